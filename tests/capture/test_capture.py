"""When a count is believed: steady calls, lost records, remembered results, other profilers.

The fake device launches what the function says; its traces go through the reader of real ones.
"""

import json
import sys

import pytest
import torch
from counting import codes, operations

from kernelcount import worker
from kernelcount.capture import MOST_CALLS
from kernelcount.devices.fake import Fake
from kernelcount.errors import KernelcountError
from kernelcount.model import Capture, Job, Unmeasured

HEAD = """
from kernelcount.devices.fake import launch, other_profiler, wait
calls = 0
"""


@pytest.fixture
def fake(count, target, monkeypatch):
    """Count a function on the fake device. `calls` is a global of it."""
    monkeypatch.setenv("KERNELCOUNT_FAKE_DEVICE", "1")

    def counted(text, *variants, **options):
        spec = target(HEAD + text) + ":f"
        options.setdefault("sizes", (4,))
        return count(spec, *variants, device="fake", **options)["eager"]

    return counted


def test_a_steady_function_is_counted_as_it_is(fake):
    outcome = fake("""
def f(x):
    launch("gemm", op="aten::mm")
    launch("relu_kernel", op="aten::relu")
    launch("relu_kernel", op="aten::relu")
""")
    assert operations(outcome) == {"gemm": 1, "relu_kernel": 2}
    assert (outcome.launches, outcome.complete, outcome.stable) == (3, True, True)
    assert outcome.notes == ()
    assert outcome.environment.kind == "fake"


def test_a_kernel_bears_the_op_that_launched_it(fake):
    outcome = fake("def f(x):\n    launch('sm90_xmma_gemm', op='aten::addmm')")
    (row,) = outcome.rows()
    assert row.label is not None
    assert row.label.endswith("addmm")


def test_a_record_lost_once_is_found_in_a_later_call(fake):
    outcome = fake("""
def f(x):
    global calls
    calls += 1
    launch("k", lost=calls == 4)  # the first profiled call
""")
    assert operations(outcome) == {"k": 1}
    assert (outcome.complete, outcome.stable) == (True, True)


def test_records_lost_in_every_call_leave_the_count_unknown(fake):
    outcome = fake("def f(x):\n    launch('a')\n    launch('b', lost=True)")
    assert isinstance(outcome, Unmeasured)
    assert outcome.code == 3
    assert "1 of 2 launches has no device record" in outcome.reason
    assert outcome.seen is not None
    assert outcome.seen.complete is False
    assert outcome.seen.launches == 2


def test_a_function_that_never_settles_is_unstable_and_says_what_was_seen(fake):
    outcome = fake("""
def f(x):
    global calls
    calls += 1
    for _ in range(1 + calls % 3):
        launch("k")
""")
    assert outcome.stable is False
    assert codes(outcome) == ["unstable"]
    seen = [1 + call % 3 for call in range(4, MOST_CALLS + 1)]
    assert ", ".join(map(str, seen)) in outcome.notes[0].detail


def test_a_function_that_settles_late_is_steady_in_the_end(fake):
    outcome = fake("""
def f(x):
    global calls
    calls += 1
    for _ in range(max(1, 8 - calls)):
        launch("k")
""")
    assert operations(outcome) == {"k": 1}
    assert outcome.stable is True


def test_calls_that_launch_other_kernels_of_the_same_number_do_not_agree(fake):
    outcome = fake("""
def f(x):
    global calls
    calls += 1
    launch(f"k{calls}")
""")
    assert outcome.stable is False


def test_a_remembered_result_is_counted_with_arguments_that_are_new(fake):
    outcome = fake("""
seen = set()
def f(x):
    if x.data_ptr() not in seen:
        seen.add(x.data_ptr())
        launch("softmax")
""")
    assert operations(outcome) == {"softmax": 1}
    assert codes(outcome) == ["memoised"]


def test_a_function_that_launches_nothing_has_no_kernels(fake):
    outcome = fake("def f(x):\n    return x")
    assert isinstance(outcome, Capture)
    assert operations(outcome) == {}
    assert (outcome.launches, outcome.stable, outcome.notes) == (0, True, ())


def test_a_maker_that_works_only_once_leaves_an_empty_call_empty(fake):
    outcome = fake("""
made = []
def make_inputs():
    if made: raise RuntimeError("no more data")
    made.append(1)
    return (torch.ones(3),)
def f(x):
    return x
""")
    assert operations(outcome) == {}


def test_another_profiler_inside_makes_the_count_unknown_and_never_zero(fake):
    outcome = fake("def f(x):\n    launch('k')\n    other_profiler()")
    assert isinstance(outcome, Unmeasured)
    assert outcome.code == 3
    assert outcome.reason.startswith("another profiler")


def test_a_graph_launch_is_one_launch_of_many_kernels(fake):
    outcome = fake("def f(x):\n    launch('k', kernels=5, graph=True)\n    launch('copy_kernel')")
    assert operations(outcome) == {"k": 5, "copy_kernel": 1}
    assert (outcome.launches, outcome.graph_launches) == (2, 1)


BACKWARD = """
class Launching(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, grad):
        launch("backward_kernel")
        return grad * 2
def f(x):
    return Launching.apply(x)
"""


def test_kernels_of_the_backward_pass_belong_to_the_call(fake):
    assert operations(fake(BACKWARD, backward=True)) == {"backward_kernel": 1}


def test_without_backward_there_is_none(fake):
    assert operations(fake(BACKWARD)) == {}


def test_a_backward_that_has_nothing_to_go_through_says_so(fake):
    outcome = fake("def f(x):\n    return x.detach()", backward=True)
    assert outcome.reason == "--backward: nothing that the function returns requires grad"
    assert outcome.code == 3


def test_gradients_are_none_before_each_call_of_a_backward_pass(fake):
    outcome = fake(
        """
model = torch.nn.Linear(4, 4)
def f(x):
    for p in (x, *model.parameters()):
        if p.grad is not None:
            launch("accumulates")
    return model(x)
""",
        backward=True,
    )
    assert operations(outcome) == {}


def test_a_backward_pass_ends_at_the_arguments_however_they_were_made(fake):
    outcome = fake(
        """
w = torch.ones(3, requires_grad=True)
def make_inputs():
    return (w * 2,)
def f(x):
    return x * 3
""",
        backward=True,
    )
    assert isinstance(outcome, Capture)


def test_the_users_exception_stops_the_profiler(fake, tmp_path):
    outcome = fake("""
def f(x):
    global calls
    calls += 1
    if calls == 5: raise ValueError("in the profiled call")
    launch("k")
""")
    assert outcome.reason == "raised ValueError: in the profiled call"
    Fake().profile(lambda: None, tmp_path / "after.json")  # a second one can be started
    assert (tmp_path / "after.json").stat().st_size > 0


def test_what_a_call_yields_is_consumed(fake):
    outcome = fake("""
def f(x):
    for i in range(3):
        launch("part")
        yield x + i
""")
    assert operations(outcome) == {"part": 3}


@pytest.mark.parametrize(
    "lazily", ["map(part, [1, 2])", "filter(part, [1, 2])", "zip(map(part, [1, 2]))"]
)
def test_so_are_pythons_own_lazy_iterators(fake, lazily):
    outcome = fake(f"""
def part(i):
    launch("part")
    return i
def f(x):
    return {lazily}
""")
    assert operations(outcome) == {"part": 2}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("async def go(x):\n    yield x\ndef f(x):\n    return go(x)", "async generator"),
        ("async def go(x):\n    return x\ndef f(x):\n    return go(x)", "coroutine"),
    ],
)
def test_what_runs_nothing_by_itself_is_refused(fake, text, kind):
    outcome = fake(text)
    assert outcome.code == 2
    assert f"returns a {kind}, which runs nothing by itself" in outcome.reason


def test_an_argument_changed_in_place_is_the_same_in_every_call(fake):
    outcome = fake("""
def f(x):
    for _ in range(int((x == x[0]).all())): launch("equal")
    x[1:] += 1
    launch("k")
def make_inputs():
    return (torch.zeros(4),)
""")
    assert operations(outcome) == {"equal": 1, "k": 1}
    assert codes(outcome) == ["idle-size", "mutates-arguments"]


def test_a_list_that_grows_is_as_it_was_at_first_in_every_call(fake):
    outcome = fake("""
def f(x, cache):
    for _ in cache["past"]: launch("k")
    cache["past"].append(x)
def make_inputs():
    return (torch.zeros(4), {"past": [torch.zeros(4)]})
""")
    assert operations(outcome) == {"k": 1}


def test_a_module_whose_buffers_change_gets_them_back_and_says_so(fake, count, target):
    outcome = fake("""
class f(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.zeros(()))
    def forward(self, x):
        for _ in range(1 + int(self.steps)): launch("k")
        self.steps += 1
""")
    assert operations(outcome) == {"k": 1}
    assert codes(outcome) == ["mutates-module"]


def test_each_variant_has_its_own_trace_file(fake, tmp_path):
    traces = tuple(str(tmp_path / f"{n}.json{gz}") for n, gz in (("a", ""), ("b", ".gz")))
    spec_text = "def f(x):\n    launch('k')\ndef g(x):\n    launch('k')"
    other = f"{tmp_path / 'users.py'}:g"
    fake(spec_text, "eager", other, traces=traces)
    assert b"cudaLaunchKernel" in (tmp_path / "a.json").read_bytes()
    assert (tmp_path / "b.json.gz").read_bytes()[:2] == b"\x1f\x8b"


@pytest.mark.parametrize("value", [None, "0"])
def test_the_fake_device_is_unknown_outside_tests(count, target, monkeypatch, value):
    monkeypatch.delenv("KERNELCOUNT_FAKE_DEVICE", raising=False)
    if value is not None:
        monkeypatch.setenv("KERNELCOUNT_FAKE_DEVICE", value)
    with pytest.raises(KernelcountError, match=r"'fake' is not one of cuda, xpu, cpu, paper$"):
        count(target("def f(x): return x") + ":f", device="fake")


# ── on the CPU, with torch's own profiler ────────────────────────────────────────────────────────


def test_a_function_under_somebody_elses_profiler_is_unknown_and_leaves_it_alone(count, target):
    from torch.profiler import ProfilerActivity, profile

    spec = target("def f(x): return x + 1") + ":f"
    with profile(activities=[ProfilerActivity.CPU], acc_events=True) as outer:
        outcome = count(spec)["eager"]
    assert isinstance(outcome, Unmeasured)
    assert outcome.reason.startswith("another profiler")
    assert any(event.name == "aten::add" for event in outer.events())


def test_an_exception_in_the_profiled_call_leaves_no_profiler_behind(count, target):
    spec = target("""
        calls = 0
        def f(x):
            global calls
            calls += 1
            if calls == 5:
                raise ValueError("late")
            return x + 1
    """)
    assert count(f"{spec}:f")["eager"].reason == "raised ValueError: late"
    fine = target("def g(x): return x + 1", "fine.py")
    assert operations(count(f"{fine}:g")["eager"]) == {"add": 1}


def test_recompiling_in_every_call_is_no_steady_state(count, target, monkeypatch):
    monkeypatch.setattr("kernelcount.capture.steady.MOST_CALLS", 5)  # they are slow
    spec = target("""
        calls = 0
        def f(x):
            global calls
            calls += 1
            torch.compiler.reset()
            return x * calls
    """)
    outcome = count(f"{spec}:f", "compile:backend=eager")["compile:backend=eager"]
    assert outcome.stable is False
    assert "recompiled" in codes(outcome)


def test_a_limit_reached_in_a_part_of_the_function_is_told_apart(count, target):
    import torch

    spec = target("""
        calls = 0
        @torch.compiler.disable
        def tag():
            global calls
            calls += 1
            return "t" * calls
        def part(x, tag):
            return (x + len(tag)).relu()
        def f(x):
            y = (x * 2).cos()
            return part(y, tag())
    """)
    with torch._dynamo.config.patch(recompile_limit=1):  # each recompilation takes a second
        outcome = count(f"{spec}:f", "compile", sizes=(8,))["compile"]
    assert "recompile-limit-in-part" in codes(outcome)
    assert "recompile-limit" not in codes(outcome)


def test_the_compilers_stance_is_as_the_user_left_it(count, target):
    import torch

    spec = target("""
        def f(x):
            torch.compiler.set_stance("force_eager")
            return x + 1
        def g(x):
            return x + 1
    """)
    outcomes = count(f"{spec}:f", "eager", "compile:backend=eager", f"{spec}:g")
    assert operations(outcomes["eager"]) == {"add": 1}
    graphs = []
    torch.compile(lambda x: x + 1, backend=lambda gm, _: graphs.append(gm) or gm)(torch.ones(2))
    assert len(graphs) == 1


# ── the call once more, for another profiler ─────────────────────────────────────────────────────


@pytest.fixture
def repeated(target, monkeypatch, tmp_path):
    """Repeat a function on the fake device: what hindered it, and the kernels of the range."""
    monkeypatch.setenv("KERNELCOUNT_FAKE_DEVICE", "1")
    monkeypatch.setenv("KERNELCOUNT_FAKE_RANGE", str(tmp_path / "range"))
    monkeypatch.setattr("sys.path", [*sys.path])

    def told(text, variant="eager", **options):
        spec = target(HEAD + text) + ":f"
        said = worker.repeat(
            Job(spec, device="fake", sizes=(4,), variants=(variant,), **options), lambda _: None
        )
        seen = tmp_path / "range"
        return said, json.loads(seen.read_text()) if seen.is_file() else None

    yield told
    torch.compiler.reset()


def test_the_range_holds_one_steady_call(repeated):
    said, kernels = repeated("""
def f(x):
    global calls
    calls += 1
    launch("warm" if calls > 4 else "cold")
""")
    assert (said, kernels) == (None, ["warm"])


def test_a_call_in_which_something_was_compiled_is_not_the_last_before_the_range(repeated):
    said, kernels = repeated(
        """
late = False
@torch._dynamo.disable
def begin():
    global calls, late
    calls += 1
    late = calls > 4
    launch(f"call {calls}")
def f(x):
    begin()
    return x * 3 if late else x * 2
""",
        "compile:backend=eager",
    )
    assert (said, kernels) == (None, ["call 7"])


def test_the_range_gets_the_arguments_as_they_were_at_first(repeated):
    said, kernels = repeated("""
first = None
def f(x):
    global first
    first = x.clone() if first is None else first
    launch("as at first" if torch.equal(x, first) else "changed")
    x.add_(1)
""")
    assert (said, kernels) == (None, ["as at first"])


def test_what_the_function_raises_there_is_a_line(repeated):
    said, kernels = repeated("def f(x):\n    raise ValueError('no')")
    assert (said, kernels) == ("raised ValueError: no", None)


def test_a_device_that_no_profiler_waits_for_is_told(target):
    said = worker.repeat(
        Job(target("def f(x): return x") + ":f", device="cpu", variants=("eager",)), lambda _: None
    )
    assert said == "no profiler waits for a range on cpu"


# ── where the CPU waits ──────────────────────────────────────────────────────────────────────────


WAITS = """
def f(x):
    launch("a", op="aten::add")
    wait("aten::item", inside="aten::_local_scalar_dense", copy="Memcpy DtoH (Device -> Pinned)")
    launch("b", op="aten::mul")
    return x
"""


def test_each_wait_has_its_line_its_kind_and_its_price(fake):
    (sync,) = fake(WAITS).syncs
    assert (sync.line, sync.function, sync.kind, sync.op) == (8, "f", "item", "item")
    assert sync.idle_ns > 0
    assert sync.seen_by == ("trace", "debug mode")


def test_without_a_wait_there_is_none_and_on_a_cpu_nobody_looked(fake, count, target):
    outcome = fake("def f(x):\n    launch('a')\n    launch('b')")
    assert outcome.syncs == ()
    assert [(g.before, g.after) for g in outcome.gaps] == [("a", "b")]
    cpu = count(target("def f(x): return x.sum().item()") + ":f", sizes=(4,))["eager"]
    assert (cpu.syncs, cpu.gaps, cpu.idle_ns) == (None, None, None)


def test_the_call_that_tells_the_lines_leaves_the_counts_and_the_users_state_alone(fake, tmp_path):
    before = torch.get_rng_state()
    outcome = fake("""
from pathlib import Path
def f(x):
    with Path(__file__).with_name("seen").open("a") as file:
        print(float(x[0]), file=file)
    x += torch.rand(4)
    launch("a")
    wait("aten::item")
    launch("b")
    return x
""")
    assert (outcome.count("kernel"), outcome.launches, outcome.stable) == (2, 2, True)
    seen = (tmp_path / "seen").read_text().split()
    assert len(seen) == 3 + 2 + 1
    assert len(set(seen)) == 1
    assert torch.equal(torch.get_rng_state(), before)


def test_a_call_that_fails_costs_the_lines_and_not_the_count(fake):
    outcome = fake("""
def f(x):
    global calls
    calls += 1
    if calls == 6:
        raise SystemExit("enough")
    launch("a")
    wait()
    launch("b")
""")
    assert operations(outcome) == {"a": 1, "b": 1}
    (sync,) = outcome.syncs
    assert (sync.line, sync.idle_ns is None) == (None, False)
    (note,) = outcome.notes
    assert note.code == "syncs-unplaced"
    assert "SystemExit" in note.detail


def test_waits_of_which_torch_tells_another_number_stay_without_a_line(fake):
    outcome = fake("""
def f(x):
    global calls
    calls += 1
    wait("aten::item")
    launch("a")
    wait("aten::item")
    if calls == 6:
        wait("aten::item")
""")
    assert [s.line for s in outcome.syncs] == [None, None]
    assert codes(outcome) == ["syncs-unplaced"]


def test_a_wait_in_a_result_that_is_remembered_is_told_of_the_call_that_made_it(fake):
    outcome = fake("""
known = {}
def f(x):
    if x.data_ptr() not in known:
        launch("a")
        wait("aten::item")
        known[x.data_ptr()] = x
    return known[x.data_ptr()]
""")
    assert codes(outcome) == ["memoised"]
    assert [s.line for s in outcome.syncs] == [10]
