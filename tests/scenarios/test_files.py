"""What each scenario must have, and that its functions compute what they say, on the CPU."""

import ast
import importlib
import os
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as nnf

from kernelcount import scenarios, target
from kernelcount.errors import NotMeasuredError, UsageError

FOLDER = scenarios.folder().absolute()
ALL = scenarios.find()


@pytest.fixture
def load(monkeypatch):
    """Import a file of the folder as its neighbours do."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(FOLDER)])
    return importlib.import_module


@pytest.mark.parametrize("scenario", ALL, ids=lambda s: s.name)
def test_each_says_what_it_claims_and_what_it_teaches(scenario):
    assert scenario.claim.endswith(".")
    assert scenario.teaches.endswith((".", ":")) or "kernelcount" in scenario.teaches
    assert 2 <= scenario.teaches.count(". ") + 1 <= 6
    assert scenario.theme in scenarios.THEMES


def test_every_name_of_a_theme_is_a_scenario():
    named = [name for names in scenarios.THEMES.values() for name in names]
    assert sorted(named) == sorted(scenario.name for scenario in ALL)


def test_every_other_file_is_used_by_one():
    texts = {p: p.read_text() for p in FOLDER.iterdir() if p.suffix in (".py", ".yaml")}
    helpers = [p for p in texts if p.suffix == ".py" and p.with_suffix(".yaml") not in texts]
    assert helpers
    for helper in helpers:
        users = [t for p, t in texts.items() if p != helper and helper.stem in t]
        assert users, f"nothing uses {helper.name}"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda p: p.stem)
def test_their_functions_are_short(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            assert node.end_lineno - node.lineno < 40, f"{path.name}: {node.name}"


# ── what they compute ────────────────────────────────────────────────────────────────────────────

PAIRS = [
    ("softmax", "by_hand", "library", 16),
    ("attention", "by_hand", "library", 16),
    ("matmul_precision", "f32", "tf32", 16),
    ("matmul_precision", "f32", "bf16", 16),
    ("mixed_precision", "layers", "autocast", 16),
    ("gradient_mean", "loop", "foreach", 5),
]


@pytest.mark.parametrize(("name", "one", "other", "size"), PAIRS)
def test_two_ways_to_compute_the_same_agree(load, name, one, other, size):
    module = load(name)
    given = module.make_inputs(size, "cpu")
    expected, actual = getattr(module, one)(*given), getattr(module, other)(*given)
    loose = other in ("bf16", "autocast") or name == "attention"
    tolerance = {"rtol": 0.02, "atol": 0.3} if loose else {"rtol": 1e-5, "atol": 1e-5}
    torch.testing.assert_close(actual.float(), expected.float(), **tolerance)


def test_tf32_is_allowed_for_one_product_alone(load):
    before = torch.get_float32_matmul_precision()
    load("matmul_precision").tf32(torch.ones(2, 2), torch.ones(2, 2))
    assert torch.get_float32_matmul_precision() == before


def test_the_training_step_computes_the_same_without_its_waits(load):
    module = load("training_loop")
    images, labels = torch.randn(8, 6), torch.randint(10, (8,))
    weight = torch.randn(6, 10, requires_grad=True)
    one, loss = module.before(images, images, labels, weight), module.metrics.pop()
    other, (same_loss, bad) = module.after(images, images, labels, weight), module.metrics.pop()
    torch.testing.assert_close(one, other)
    torch.testing.assert_close(loss, same_loss)
    torch.testing.assert_close(loss, nnf.cross_entropy(images @ weight, labels).detach())
    assert not bad


def test_the_training_step_stops_at_a_loss_that_is_no_number(load):
    images = torch.full((8, 6), float("nan"))
    given = images, images, torch.zeros(8, dtype=torch.long), torch.zeros(6, 10, requires_grad=True)
    module = load("training_loop")
    with pytest.raises(ValueError, match="not a number"):
        module.before(*given)
    module.after(*given)
    assert module.metrics.pop()[1]


def test_graph_breaks_change_no_result(load):
    module = load("graph_breaks")
    a, b = torch.randn(2, 8).unbind()
    for name in ("with_print", "with_item", "with_disabled"):
        torch.testing.assert_close(getattr(module, name)(a, b), module.whole(a, b))


def test_the_layers_are_linear_layers_with_relu(load):
    module = load("small_layers")
    layers = module.Layers()
    (expected,) = given = module.make_inputs(8, "cpu")
    for layer in layers.layers:
        expected = (expected @ layer.weight.T + layer.bias).relu()
    torch.testing.assert_close(layers(*given), expected)
    assert len(layers.layers) == 8


def test_the_layers_of_the_first_call_are_the_same_without_a_module(load):
    x, weights, biases = load("first_call").make_inputs(8, "cpu")
    expected = x
    for weight in weights:
        expected = (expected @ weight.T).relu()
    torch.testing.assert_close(load("first_call").layers(x, weights, biases), expected)


def test_the_first_call_is_recorded_with_empty_caches_and_leaves_two_traces(
    load, monkeypatch, tmp_path
):
    module, seen = load("first_call"), []

    class Recorded:
        def export_chrome_trace(self, path):
            Path(path).write_text("{}")

    def record(_call):
        caches = [os.environ[f"{name}_CACHE_DIR"] for name in ("TORCHINDUCTOR", "TRITON")]
        seen.append([list(Path(c).glob("*")) if Path(c).is_dir() else [] for c in caches])
        return Recorded()

    for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"):
        monkeypatch.setenv(name, str(FOLDER))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch, "compile", lambda function: function)
    monkeypatch.setattr(module, "make_inputs", lambda: ())
    monkeypatch.setattr(module, "layers", lambda *_: None)
    monkeypatch.setattr(module, "record", record)
    module.main(tmp_path)
    _thrown_away, first, _later = seen
    assert first == [[], []]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["first.json", "later.json"]


# ── kernels by hand ──────────────────────────────────────────────────────────────────────────────

ALONE = "vector_add_cuda"  # it imports none of its neighbours
CUDA = sorted((p for p in FOLDER.glob("*_cuda.py") if p.stem != ALONE), key=str)


@pytest.mark.parametrize("path", CUDA, ids=lambda p: p.stem)
def test_cuda_c_is_not_built_at_import(load, path):
    source = load(path.stem).SOURCE
    assert "module" not in vars(source)
    assert source.functions
    assert all(f"torch::Tensor {name}(" in source.text for _, name in source.functions)


def test_the_pattern_for_a_kernel_of_ones_own_works_when_it_is_copied_alone(tmp_path):
    (tmp_path / "mine.py").write_text((FOLDER / f"{ALONE}.py").read_text())
    module = target.load(f"{tmp_path / 'mine.py'}:vector_add").module
    assert module.built.cache_info().currsize == 0  # nothing is built at import
    given = torch.ones(2, 3, device="meta")
    assert module.vector_add(given, given).shape == (2, 3)


def test_one_that_is_copied_without_its_neighbour_says_where_that_is(tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "triton_if_there", raising=False)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if Path(p) != FOLDER])
    (tmp_path / "mine.py").write_text((FOLDER / "softmax_triton.py").read_text())
    with pytest.raises(UsageError) as refused:
        target.load(f"{tmp_path / 'mine.py'}:softmax")
    assert str(refused.value) == (
        "mine.py imports triton_if_there, which is a file of kernelcount's scenarios: copy"
        f" {scenarios.folder() / 'triton_if_there.py'} beside it"
    )


@pytest.mark.skipif(torch.version.cuda is not None, reason="this torch has CUDA")
def test_without_cuda_a_kernel_says_what_is_missing(load):
    with pytest.raises(NotMeasuredError, match="a torch without CUDA"):
        load("add_relu_cuda").add_relu(torch.ones(4), torch.ones(4))


def test_a_tensor_that_is_only_a_shape_is_not_given_to_a_kernel(load):
    module = load("cuda_source")
    with pytest.raises(NotMeasuredError, match="on paper"):
        module.check_is_there(torch.ones(2, device="meta"))
    module.check_is_there(torch.ones(2))


def test_without_triton_a_kernel_says_so_when_it_is_launched(load):
    missing = load("triton_if_there")._Missing()
    kernel = missing.jit(lambda: None)
    for use in (lambda: kernel[1,], lambda: missing.cdiv(1, 2)):
        with pytest.raises(NotMeasuredError, match="no Triton here"):
            use()


def test_two_gpus_are_asked_for_in_clear_words(load, monkeypatch):
    module = load("two_gpus")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(NotMeasuredError, match=r"^needs two GPUs$"):
        module.make_inputs()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    with pytest.raises(SystemExit, match="2 ranks take 2 GPUs, and here are 0"):
        module.main(Path())
