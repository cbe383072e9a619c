"""The Python API: what it counts, what it raises, and that the caller's process stays as it was."""

import asyncio
import functools
import logging
import random
import signal
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import pytest
from counting import CASES

import kernelcount
import kernelcount.runners
from kernelcount import NotMeasuredError, UnreadableError, UsageError, check, compare, count, read
from kernelcount.devices import fake

H200 = Path(__file__).parent / "data" / "h200"


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch):
    """None that paper might touch: beside one it is refused in this process."""
    monkeypatch.setattr("kernelcount.worker.device.may_have_a_gpu", lambda: False)


@pytest.fixture
def fakes(monkeypatch):
    """Allow the fake device."""
    monkeypatch.setenv("KERNELCOUNT_FAKE_DEVICE", "1")


def two():
    """Launch two kernels on the fake device."""
    fake.launch("k_add", op="aten::add")
    fake.launch("k_relu", op="aten::relu")


def add_relu(a, b):
    return (a + b).relu()


def pair(n=64):
    import torch

    return torch.ones(n), torch.ones(n)


# ── what is counted ──────────────────────────────────────────────────────────────────────────────


def test_a_function_is_counted_with_the_arguments_that_it_is_given(fakes):
    got = count(two, device="fake")
    assert got.kernels == 2
    assert got.kernel_names == {"k_add": 1, "k_relu": 1}
    assert got.launches == 2
    assert got.basis == "measured"
    assert got.exit_code == 0
    assert repr(got) == "<Count eager: 2 kernels>"


def test_on_paper_the_arguments_are_taken_to_the_card_and_come_back():
    a, b = pair()
    got = count(add_relu, a, b, device="paper")
    assert (got.kernels, got.transfers, got.generated) == (2, 5.0, 0)
    assert got.target.inputs == ("f32[64]", "f32[64]")
    assert {t.device.type for t in (a, b)} == {"cpu"}


def test_eager_stands_beside_compile():
    got = compare(add_relu, *pair(), device="paper")
    assert [c.kernels for c in got] == [2, 1]
    assert got.names == ("eager", "compile")
    assert got["compile"].generated == got[1].kernels == 1
    assert got["compile"].kernel_names == {"triton_poi_fused_add_relu_0": 1}
    with pytest.raises(KeyError, match="'compiled' is not one of eager, compile"):
        got["compiled"]


def test_a_model_in_a_closure_is_counted_where_its_inputs_are_and_put_back():
    import torch

    model = torch.nn.Sequential(torch.nn.LayerNorm(8), torch.nn.ReLU())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = {"x": [torch.ones(4, 8)]}
    weight, before = model[0].weight, model[0].weight.clone()

    def step():
        optimizer.zero_grad()
        model(x["x"][0]).sum().backward()
        optimizer.step()

    got = count(step, device="paper")
    labels = [row.label for row in got.rows]
    assert "native_layer_norm_backward" in labels
    assert "_foreach_add_" in labels  # the optimizer's step
    assert model[0].weight is weight
    assert optimizer.param_groups[0]["params"][0] is weight
    assert torch.equal(weight, before)
    assert weight.grad is None
    assert x["x"][0].device.type == "cpu"
    assert not optimizer.state


def test_what_hangs_on_a_module_or_an_object_comes_along_too():
    import torch

    class Scaled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.scale = torch.nn.ReLU(), torch.ones(4)
            self.pair = (torch.ones(4), [torch.ones(4)])

        def forward(self, x):
            return self.inner(x) * self.scale + self.pair[1][0]

    module, given = Scaled(), torch.ones(4)
    scale, pair = module.scale, module.pair
    assert count(module, given, device="paper").kernels == 3
    assert module.scale is scale
    assert module.pair is pair
    assert count(functools.partial(module.forward, given), device="paper").kernels == 3


def test_eval_mode_is_for_the_count_alone():
    import torch

    module = torch.nn.Sequential(torch.nn.Dropout(0.5))
    counted = count(module, torch.ones(4), evaluate=True, device="cpu")
    assert counted.cpu_ops["aten"] == 0
    assert module.training
    assert module[0].training
    with pytest.raises(UsageError, match=r"not an nn\.Module"):
        count(add_relu, *pair(), evaluate=True, device="cpu")


def test_what_is_elsewhere_is_not_counted_on_the_cpu():
    import torch

    with pytest.raises(UsageError, match="reaches is on meta"):
        count(torch.sin, torch.empty(4, device="meta"), device="cpu")
    assert count(torch.sin, torch.empty(4, device="meta"), device="paper").kernels == 1


def test_other_implementations_are_functions_or_names():
    def fused(a, b):
        return a + b

    got = compare(add_relu, *pair(), variants=["eager", fused, lambda a, b: a], device="paper")
    assert [c.kernels for c in got] == [2, 1, 0]
    assert got.names == ("eager", "test_api:fused", "test_api:<lambda>")
    twice = compare(add_relu, *pair(), variants=[add_relu, add_relu], device="paper")
    assert len(set(twice.names)) == 2


def test_eager_says_that_what_is_compiled_already_ran_uncompiled():
    import torch

    compiled = torch.compile(add_relu, backend="eager")
    said = "compiled already, and run uncompiled: add_relu"
    for fn in (compiled, lambda a, b: compiled(b, a)):
        got = count(fn, *pair(), device="paper")
        assert got.kernels == 2
        assert [(note.code, note.detail) for note in got.notes] == [("compiled-already", said)]
        assert f"note: {said}.\n" in str(got)
    assert compare(compiled, *pair(), device="paper")["compile"].kernels == 1


def test_a_compiled_function_that_is_its_own_variant_runs_as_it_is_compiled():
    import torch

    compiled = torch.compile(add_relu)
    got = count(compiled, *pair(), variant=compiled, device="paper")
    assert (got.kernels, got.notes) == (1, ())
    graphed = torch.compile(add_relu, mode="reduce-overhead")
    got = count(add_relu, *pair(), variant=graphed, device="paper")
    with pytest.raises(NotMeasuredError, match=r"at least 1, .*CUDA graphs"):
        got.kernels  # noqa: B018


def test_keyword_arguments_go_by_kwargs_or_by_a_partial():
    def scaled(x, *, device):
        return x * device

    (x, _) = pair()
    by_kwargs = count(scaled, x, kwargs={"device": 2.0}, device="paper")
    by_partial = count(functools.partial(scaled, x, device=2.0), device="paper")
    assert by_kwargs.kernels == by_partial.kernels == 1


def test_arguments_are_made_as_the_command_line_makes_them_where_none_are_given():
    got = count(add_relu, device="cpu", size=1e3, dtype="f64")
    assert got.target.inputs == ("f64[1000]", "f64[1000]")
    got = count(add_relu, device="cpu", inputs=["f32[4]", "f32[]"])
    assert got.target.inputs == ("f32[4]", "f32[]")
    got = count(add_relu, device="cpu", maker=pair)
    assert got.target.inputs == ("f32[64]", "f32[64]")


def test_a_backward_pass_is_counted_of_what_the_caller_lets_require_it():
    a, b = pair()
    a.requires_grad_()
    got = count(add_relu, a, b, device="cpu", backward=True)
    assert got.cpu_ops["aten"] > 2
    assert a.grad is None
    got = count(add_relu, b, b, device="cpu", backward=True)
    assert "nothing that the function returns requires grad" in got.reason


def test_a_trace_is_read():
    got = read(H200 / "h200-add_relu.compile.json.gz")
    assert len(got) == 1
    assert got[0].kernels == 1
    assert got[0].kernel_time_ns > 0
    assert got.to_dict()["command"] == "read"
    assert repr(got).startswith("<Reading ")
    with pytest.raises(UnreadableError):
        read(__file__)


def test_a_target_that_a_string_names_runs_in_a_process_of_its_own(monkeypatch):
    asked = []

    def elsewhere(job, progress, companion=None):
        asked.append(job)
        return kernelcount.runners.in_process(job, progress)

    monkeypatch.setattr("kernelcount.runners.in_worker", elsewhere)
    monkeypatch.setattr(sys, "path", [*sys.path])
    got = count(f"{CASES / 'operations.py'}:add_relu", size="64", device="cpu", timeout=300)
    assert got.cpu_ops == {"aten": 2, "generated": 0}
    assert [(job.sizes, job.timeout, job.variants) for job in asked] == [((64,), 300, ("eager",))]


# ── unknown is no number ─────────────────────────────────────────────────────────────────────────


def test_what_is_not_known_raises_and_says_why(fakes):
    got = count(lambda: fake.launch("k", lost=True), device="fake")
    assert not got.measured
    assert "1 launch" in got.reason
    assert got.exit_code == 3
    with pytest.raises(NotMeasuredError, match=r"eager: kernels not known: .*1 launch"):
        assert got.kernels == 1
    assert got.to_dict()["variants"][0]["kernels"] is None


def test_a_lower_bound_is_no_count():
    import torch

    got = count(torch.mm, torch.ones(4, 4), torch.ones(4, 4), device="paper", gpu="A100")
    with pytest.raises(NotMeasuredError, match=r"at least 1, .*may launch more .*mm"):
        assert got.kernels == 1
    assert got.kernels_at_least == 1
    assert repr(got) == "<Count eager: at least 1 kernel on paper>"


def test_a_count_that_changes_from_call_to_call_is_no_count(fakes):
    calls = iter(range(1, 100))

    def unsteady():
        fake.launch("k", kernels=next(calls))

    got = count(unsteady, device="fake")
    assert got.stable is False
    with pytest.raises(NotMeasuredError, match="no two calls in a row launched the same"):
        got.kernels  # noqa: B018


def test_operations_of_the_cpu_are_no_kernels():
    got = count(add_relu, *pair(), device="cpu")
    assert got.cpu_ops == {"aten": 2, "generated": 0}
    with pytest.raises(NotMeasuredError, match="no GPU was involved: cpu_ops"):
        got.kernels  # noqa: B018


def test_no_kernels_of_a_function_that_has_nothing_on_the_gpu_prove_nothing():
    import torch

    got = count(lambda: torch.ones(4).relu(), device="paper")
    assert "no tensor that it reaches is on a GPU" in got.reason
    assert count(lambda x: x.view(2, 2), torch.ones(4), device="paper").kernels == 0


def test_a_result_that_is_remembered_is_no_zero():
    import torch

    @functools.lru_cache
    def remembers(x):
        return x * 2

    x = torch.ones(4)
    for fn, given in ((remembers, (x,)), (lambda: remembers(x), ())):
        got = count(fn, *given, device="paper")
        with pytest.raises(NotMeasuredError, match="remembered"):
            assert got.kernels == 0


def test_a_tensor_that_could_not_be_taken_along_is_said_to_be_on_the_host():
    import torch

    got = count(lambda x: x + torch.ones(4), torch.ones(4), device="paper")
    assert "a tensor of the function's own is on the host" in got.reason
    assert isinstance(got.error.__cause__, RuntimeError)


def test_figures_that_were_not_asked_for_say_how_to_ask(fakes):
    got = count(two, device="fake")
    with pytest.raises(NotMeasuredError, match="seconds=1 has them timed"):
        got.call_time_ns  # noqa: B018
    with pytest.raises(NotMeasuredError, match="device='paper'"):
        got.transfers  # noqa: B018
    timed = compare(two, variants=["eager", two], device="fake", seconds=0.05)
    assert timed[0].call_time_ns == 20_000
    assert timed[1].speed.verdict == "no difference"
    assert timed[1].numerics.verdict == "nothing"


# ── errors ───────────────────────────────────────────────────────────────────────────────────────


class Mine(Exception):
    pass


@pytest.mark.parametrize("device", ["cpu", "paper"])
@pytest.mark.parametrize("error", [Mine("mine"), KeyboardInterrupt(), SystemExit(3)])
def test_what_the_function_raises_is_raised_as_it_is(device, error):
    def fails(a):
        raise error

    with pytest.raises(type(error)) as raised:
        count(fails, pair()[0], device=device)
    assert raised.value is error


def test_what_another_implementation_raises_is_raised_too():
    def fails(a, b):
        raise Mine

    with pytest.raises(Mine):
        compare(add_relu, *pair(), variants=["eager", fails], device="cpu", seconds=0)


def test_where_only_compiling_fails_the_variant_is_unmeasured_and_has_the_exception():
    import torch

    def eager_alone(a, b):
        if torch.compiler.is_compiling():
            raise Mine("not compiled")
        return a + b

    got = compare(eager_alone, *pair(), variants=["eager", "compile:fullgraph"], device="cpu")
    assert got["eager"].measured
    failed = got["compile:fullgraph"]
    assert not failed.measured
    assert isinstance(failed.error, Exception)
    assert failed.exit_code == got.exit_code == 3
    with pytest.raises(type(failed.error)):
        count(eager_alone, *pair(), variant="compile:fullgraph", device="cpu")


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda: count(3), "3 cannot be called"),
        (lambda: count(two, device="gpu"), "did you mean cuda?"),
        (lambda: count(two, timeout=3), "cannot be ended; name the function by a string"),
        (lambda: count(add_relu, 1, size=3), "size: the arguments are given"),
        (lambda: count(two, inputs="f32[N]"), r"give a list of specs such as \['f32\[N\]'\]"),
        (lambda: count(two, size=1.5), "is not a size|not a whole number"),
        (lambda: compare(two, variants=[]), "name at least one"),
        (lambda: compare(two, variants=[3]), "3 is no name and no function"),
        (lambda: count("x.py:f", 1), "runs in another process"),
        (lambda: count("nowhere.py:f"), "there is no file nowhere.py"),
    ],
)
def test_a_wrong_question_is_answered_with_what_to_write(ask, said):
    with pytest.raises(UsageError, match=said):
        ask()


def test_beside_a_gpu_paper_is_refused_in_this_process(monkeypatch):
    monkeypatch.setattr("kernelcount.worker.device.may_have_a_gpu", lambda: True)
    for asked in ({"device": "paper"}, {"gpu": "L4"}):
        with pytest.raises(NotMeasuredError, match="name the function by a string"):
            count(add_relu, *pair(), **asked)


def test_a_function_that_is_async_runs_nothing():
    async def later():
        return 1

    with pytest.raises(UsageError, match="runs nothing by itself"):
        count(later, device="cpu")


def test_counting_inside_of_what_is_counted_is_refused():
    with pytest.raises(UsageError, match="being counted already"):
        count(lambda: count(two), device="cpu")
    assert count(add_relu, *pair(), device="cpu").measured


# ── the caller's process ─────────────────────────────────────────────────────────────────────────


def process():
    """What a count might change of it."""
    import torch
    from torch._dynamo import eval_frame

    return {
        "random": random.getstate(),
        "torch": torch.get_rng_state().tolist(),
        "dtype": torch.get_default_dtype(),
        "grad": torch.is_grad_enabled(),
        "device": str(torch.get_default_device()),
        "deterministic": torch.get_deterministic_debug_mode(),
        "threads": torch.get_num_threads(),
        "stance": eval_frame._stance,
        "warnings": list(warnings.filters),
        "path": list(sys.path),
        "argv": list(sys.argv),
        "streams": (sys.stdout, sys.stderr),
        "signals": [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)],
        "folder": Path.cwd(),
        "to": torch.Tensor.to,
        "cuda": torch.cuda.is_available,
    }


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("device", ["cpu", "paper"])
def test_the_process_is_left_as_it_was_also_after_an_error(device, fails, tmp_path):
    import torch

    def meddles(x):
        random.seed(1)
        torch.manual_seed(1)
        torch.use_deterministic_algorithms(True)
        torch.set_default_dtype(torch.float64)
        warnings.simplefilter("always")
        sys.path.append("x")
        x.add_(1)
        x.grad = torch.ones_like(x)
        torch.randn(3)
        torch.compiler.set_stance("force_eager")
        torch.set_grad_enabled(False)
        if fails:
            raise Mine
        return x

    x = torch.zeros(4)
    with torch.inference_mode(False):
        before = process()
        try:
            count(meddles, x, device=device)
        except Mine:
            assert fails
        after = process()
    assert {k for k in before if before[k] != after[k]} == set()
    assert x.tolist() == [0.0] * 4
    assert x.grad is None


def test_a_caller_without_gradients_has_none_meanwhile_and_afterwards():
    import torch

    seen = []
    with torch.no_grad():
        got = count(lambda x: seen.append(torch.is_grad_enabled()), torch.ones(3), device="cpu")
        assert not torch.is_grad_enabled()
    assert not any(seen)
    assert [n.detail for n in got.notes] == ["the caller switched gradients off"]


def test_it_works_inside_of_a_running_event_loop_and_from_threads():
    async def main():
        a, b = pair()
        here = count(add_relu, a, b, device="cpu")
        others = await asyncio.gather(
            *(asyncio.to_thread(count, add_relu, a, b, device="cpu") for _ in range(2))
        )
        return [here, *others]

    assert [c.cpu_ops["aten"] for c in asyncio.run(main())] == [2, 2, 2]
    assert threading.active_count() < 50


def test_what_the_function_prints_is_the_callers_but_for_thousands_of_timed_calls(capsys, fakes):
    def chatty():
        print("hello")
        two()

    count(chatty, device="fake")
    said = capsys.readouterr().out
    compare(chatty, variants=["eager"], device="fake", seconds=0.1)
    assert set(said.splitlines()) == {"hello"}
    assert len(capsys.readouterr().out) == len(said)


def test_the_compilers_trace_is_not_for_those_who_listen_to_all_logs(caplog):
    class Listener(logging.Handler):
        heard = 0

        def emit(self, record):
            self.heard += record.name == "torch.__trace"

    trace, everybody, of_trace = logging.getLogger("torch.__trace"), Listener(), Listener()
    logging.getLogger().addHandler(everybody)
    for handler in (everybody, of_trace):
        trace.addHandler(handler)
    before = list(trace.handlers)
    try:
        count(add_relu, *pair(), variant="compile", device="paper")
        assert set(trace.handlers) == set(before)
    finally:
        logging.getLogger().removeHandler(everybody)
        for handler in (everybody, of_trace):
            trace.removeHandler(handler)
    assert (everybody.heard, of_trace.heard > 0) == (0, True)
    assert not [record for record in caplog.records if record.name == "torch.__trace"]


def test_many_counts_do_not_use_up_the_recompiles_that_torch_allows():
    import torch

    for n in range(10):
        got = count(add_relu, *pair(8 + n), variant="compile:backend=eager", device="cpu")
        assert [note.code for note in got.notes] == []
    compiled = torch.compile(add_relu, backend="eager")
    assert compiled(*pair()).tolist() == [2.0] * 64


# ── the package ──────────────────────────────────────────────────────────────────────────────────


def test_importing_the_package_and_listing_it_loads_nothing():
    program = (
        "import sys, kernelcount; dir(kernelcount); kernelcount.__version__\n"
        "print(*sorted(m for m in sys.modules if m.partition('.')[0] in\n"
        "      ('kernelcount', 'torch', 'rich', 'msgspec', 'yaml', 'typer')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == ["kernelcount"]


def test_every_public_name_is_there_and_documented():
    for name in kernelcount.__all__:
        value = getattr(kernelcount, name)
        assert name.startswith("__") or value.__doc__
    assert set(kernelcount.__all__) <= set(dir(kernelcount))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        kernelcount.nothing  # noqa: B018
    assert "`device`" in count.__doc__


# ── budgets ──────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def budget(tmp_path, monkeypatch):
    """Write a budget for a function, which is then counted in this process."""

    def run(*given, **_):
        return kernelcount.runners.in_process(*given)

    monkeypatch.setattr("kernelcount.warm.in_fork", run)
    monkeypatch.setattr(sys, "path", [*sys.path])
    users = tmp_path / "users_of_budget.py"
    users.write_text("def add_relu(a, b):\n    return (a + b).relu()\n")

    def written(limits):
        path = tmp_path / "budget.yaml"
        path.write_text(f"target: {users.name}:add_relu\nsize: 8\nbudget:\n  eager: {limits}\n")
        return path

    return written


def test_a_check_is_true_only_where_every_limit_is_kept(budget):
    kept = check(budget("{generated: 0}"), device="cpu")
    assert kept
    assert (kept.exit_code, len(kept.kept), kept.broken) == (0, 1, ())
    broken = check(budget("{generated: 1}"), device="cpu")
    assert not broken
    assert [held.limit for held in broken.broken] == ["generated"]
    assert "generated 0, allowed 1" in str(broken)
    assert broken.to_dict()["budgets"][0]["status"] == "broken"
    assert repr(broken) == "<Checking 0 kept, 1 broken>"
    undecided = check(budget("{kernels: 2}"), device="cpu")
    assert not undecided
    assert undecided.undecided[0].why == "no GPU was involved"
    assert check(budget("{kernels: 2}"), device="cpu", allow_undecided=True)


def test_a_budget_with_a_mistake_says_where(budget):
    with pytest.raises(UsageError, match=r"budget.yaml:4:11: .*kernels"):
        check(budget("{kernel: 2}"))
    with pytest.raises(UsageError, match="there is no format 'xml', but table"):
        check(budget("{generated: 0}"), device="cpu").render("xml")
