"""What people write for a GPU: counted on paper, or refused in words."""

from pathlib import Path

import pytest
import torch

from kernelcount import runners
from kernelcount.errors import KernelcountError
from kernelcount.model import Job, Unmeasured, note_codes
from kernelcount.paper import threads
from kernelcount.worker import device

CODE = Path(__file__).parent / "gpu_code.py"
AROUND_A_WAIT = "2" if torch.__version__.startswith("2.11.") else "1"  # it breaks the graph, or not

pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.usefixtures("by_rules_alone", "without_costs"),
]


def count(spec, *variants, **flags):
    """The outcomes by variant."""
    job = Job(spec, variants=variants or ("eager", "compile"), device="paper", sizes=(64,), **flags)
    return {o.name: o for o in runners.in_process(job, lambda _: None).outcomes.values()}


def kernels(outcome):
    """A number; with + where it is a lower bound; or the reason for there being none."""
    if isinstance(outcome, Unmeasured):
        assert outcome.code == 3
        return outcome.reason
    return f"{outcome.count('kernel')}{'+' if outcome.paper.at_least else ''}"


FUSES = "in compiled code: whether Inductor fuses across it is not known here"


@pytest.mark.parametrize(
    ("name", "eager", "compiled"),
    [
        ("streams", "2", f"a stream {FUSES}"),
        ("events", "1+", f"an event {FUSES}"),
        ("waits", "2", AROUND_A_WAIT),
        ("graph", "4", f"the capture of a CUDA graph {FUSES}"),
        ("memory", "1", "1"),
        ("asks", "1", "1"),
        ("accelerates", "2", "1"),
        ("settings", "1", "1"),
        ("copied", "1", "1"),
        ("after_another", "1", "1"),
        ("found", "2+", "2+"),
        ("saved", "1+", "1+"),
        ("listed", "1", "1"),
        ("made_on_the_host", "1", "1"),
        ("back_to_the_host", "1", "1"),
        ("works_on_the_host", "1", "1"),
        ("printed", "1", "1"),
        ("between_graphs", "3", "3"),
        ("goes_on_without_casts", "3", "1"),
    ],
)
def test_code_for_a_gpu_is_counted_or_refused_in_words(name, eager, compiled):
    outcomes = count(f"{CODE}:{name}")
    assert (kernels(outcomes["eager"]), kernels(outcomes["compile"])) == (eager, compiled)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("generator", "2"),
        ("random_graph", "1+"),
        ("graphed", "torch.cuda.make_graphed_callables is not followed on paper"),
        ("scales", "17+"),
        ("pinned", "2"),
        ("marked", "1"),
        ("to_numpy", "1"),
        ("sparse", "tensors with layout sparse_coo are not counted on paper"),
        (
            "without_a_fake",
            "an op of the user's has no fake implementation (torch.library.register_fake), so what "
            "it gives is not known on paper",
        ),
        ("old_types", "2"),
        (
            "triton_kernel",
            "the function launches a Triton kernel of its own: on paper it is not built, and so"
            " not counted",
        ),
    ],
)
def test_so_is_code_that_torch_does_not_compile_or_runs_as_eager(name, expected):
    assert kernels(count(f"{CODE}:{name}", "eager")["eager"]) == expected


@pytest.mark.parametrize("name", ["generator", "old_types"])
def test_what_the_compiler_asks_of_cuda_itself_is_refused_in_one_sentence(name):
    reason = kernels(count(f"{CODE}:{name}", "compile")["compile"])
    assert reason.startswith("this is not done on paper: ")
    assert "\n" not in reason


def test_an_op_of_the_users_own_is_named_and_leaves_the_count_open():
    outcomes = count(f"{CODE}:own")
    assert [kernels(o) for o in outcomes.values()] == ["1+", "1+"]
    for outcome in outcomes.values():
        assert any("own" in n.detail for n in outcome.notes if n.code == "at-least")


def test_two_copies_of_a_pinned_tensor_are_copies_from_the_host():
    assert count(f"{CODE}:pinned", "eager")["eager"].count("copy") == 2


def test_who_asks_how_full_the_card_is_is_told_of_an_empty_one_and_that_is_said():
    assert "idle-card" in note_codes(count(f"{CODE}:memory", "eager")["eager"].notes)


@pytest.mark.parametrize("name", ["threaded", "pooled", "pooled_before"])
def test_work_in_a_thread_of_the_users_is_refused_and_not_counted_as_nothing(name):
    for outcome in count(f"{CODE}:{name}").values():
        assert kernels(outcome) == threads.REASON


@pytest.mark.parametrize(("name", "expected"), [("at_its_place", ["2", "2"]), ("by_storage", "11")])
def test_tensors_lie_at_one_place_only_where_they_share_a_storage_and_that_is_said(name, expected):
    outcomes = count(f"{CODE}:{name}")
    assert [kernels(o) for o in outcomes.values()] == list(expected)
    for outcome in outcomes.values():
        assert any("lie in memory" in n.detail for n in outcome.notes if n.code == "idle-card")


def test_a_time_that_nobody_can_know_leaves_the_count_open():
    notes = count(f"{CODE}:events", "eager")["eager"].notes
    assert any("a time between events" in n.detail for n in notes if n.code == "at-least")


MODULE = """
from torch import nn
torch.manual_seed(0)
torch.cuda.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
layer = nn.LayerNorm(64).cuda()
w = torch.rand(64, device="cuda")
pair = torch.tensor([1.0, 2.0], device=device)
stream = torch.cuda.Stream()
assert layer.weight.is_cuda and w.device.index == 0 and device.type == "cuda"

def with_layer(a): return layer(a.view(1, 64))
def with_globals(a): return a * w + pair.sum()
def branches(a): return a * 2 if w.sum() > 0 else a
def on_a_stream(a):
    with torch.cuda.stream(stream): return a + 1
def closed_over():
    t = torch.ones(64, device="cuda")
    return lambda a: a + t + w
closure = closed_over()
@torch.compile
def compiled(a): return (a + 1).relu()
warm = compiled(w)
def uses_warm(a): return a + warm
"""


@pytest.mark.parametrize(
    ("name", "eager", "compiled"),
    [
        ("with_layer", "1", "1"),
        ("with_globals", "3", "1"),
        ("closure", "2", "1"),
        ("on_a_stream", "1", f"a stream {FUSES}"),
        ("uses_warm", "1", "1"),
    ],
)
def test_a_module_may_put_tensors_on_the_gpu_while_it_is_imported(target, name, eager, compiled):
    outcomes = count(f"{target(MODULE)}:{name}")
    assert (kernels(outcomes["eager"]), kernels(outcomes["compile"])) == (eager, compiled)


def test_values_that_a_module_drew_while_it_was_imported_decide_a_branch(target):
    outcomes = count(f"{target(MODULE)}:branches")
    assert [kernels(o) for o in outcomes.values()] == ["3", "2"]
    assert all("doubtful-values" not in note_codes(o.notes) for o in outcomes.values())


def test_a_module_may_ask_for_a_value_while_it_is_imported(target):
    body = "w = torch.full((4,), 2.0, device='cuda')\nn = int(w.sum())\n"
    path = target(body + "def f(a): return a if n != 8 else a + 1")
    outcome = count(f"{path}:f", "eager")["eager"]
    assert kernels(outcome) == "1"
    assert "values" in note_codes(outcome.notes)


@pytest.mark.parametrize(("name", "expected"), [("adds", ["4", "1"]), ("branches", ["4", "2"])])
def test_the_gpu_may_be_the_default_device(target, name, expected):
    body = """
    torch.set_default_device("cuda")
    w, t = torch.randn(64), torch.tensor([1.0])
    def adds(a): return a + w + torch.zeros(64) + t
    def branches(a): return a + 1 if w.abs().sum() > 0 else a
    """
    try:
        assert [kernels(o) for o in count(f"{target(body)}:{name}").values()] == expected
    finally:
        import torch

        torch.set_default_device(None)


def test_what_a_module_cannot_do_on_paper_is_told_of_its_import(target):
    path = target("x = torch.Stream(device='cuda')\ndef f(a): return a")
    with pytest.raises(KernelcountError, match=r"importing .*: this is not done on paper: \S"):
        count(f"{path}:f")


def test_a_variable_that_the_compiler_read_before_the_module_set_it_is_told(target, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_MAX_AUTOTUNE", "0")
    body = "import os\nos.environ['TORCHINDUCTOR_MAX_AUTOTUNE'] = '1'\ndef f(a): return a + 1"
    notes = count(f"{target(body)}:f", "eager")["eager"].notes
    (late,) = [n.detail for n in notes if n.code == "late-environment"]
    assert "TORCHINDUCTOR_MAX_AUTOTUNE" in late


def test_a_mac_is_told_why_it_counts_on_paper(target, monkeypatch):
    from kernelcount import devices

    paper = devices.choose("paper")
    monkeypatch.setattr(devices, "choose", lambda text: paper if text is None else 1 / 0)
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: True)
    job = Job(f"{target('def f(a): return a + 1')}:f", variants=("eager",), sizes=(64,))
    (outcome,) = runners.in_process(job, lambda _: None).outcomes.values()
    (note,) = [n for n in outcome.notes if n.code == "mps"]
    assert "NVIDIA H200" in note.detail


def test_a_gpu_that_may_be_there_is_left_to_the_users_module(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert not device.is_for_paper(Job("x.py:f"))
    assert device.is_for_paper(Job("x.py:f", device="paper"))
