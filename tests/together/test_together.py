"""What is said of variants beside each other: times in turn, results, memory; counts stay."""

import re
import sys

import pytest
import torch
from cases.FC52_return_kinds import EXPECT
from counting import CASES, codes

import kernelcount
from kernelcount import runners
from kernelcount.conclusions import comparison, rates
from kernelcount.devices import fake as fake_device
from kernelcount.model import Job, LaunchCosts, Rates
from kernelcount.probes import agreement, launching
from kernelcount.together.costs import _launch_costs

HEAD = "from kernelcount.devices.fake import launch, allocate\n"


@pytest.fixture
def fake(count, target, monkeypatch):
    """Run functions on the fake device, `f` as eager and `g` as another implementation of it."""
    monkeypatch.setenv("KERNELCOUNT_FAKE_DEVICE", "1")

    def counted(text, **options):
        path = target(HEAD + text)
        options = {"sizes": (4,), "seconds": 0.2, **options}
        found = count(f"{path}:f", "eager", f"{path}:g", device="fake", **options)
        return found["eager"], found[f"{path}:g"]

    return counted


def test_variants_are_timed_in_turn_and_one_is_faster(fake):
    slow, fast = fake("""
def f(x):
    launch("add", duration_us=300)
    launch("relu", duration_us=200)
def g(x):
    launch("fused", duration_us=250)
""")
    assert slow.timing.together == fast.timing.together == (slow.name, fast.name)
    assert len(slow.timing.samples_ns) == len(fast.timing.samples_ns) >= 8
    speed = comparison.speed(slow, fast)
    assert (speed.verdict, speed.ratio) == ("faster", pytest.approx(2.0))
    assert comparison.speed(fast, slow).verdict == "slower"


def test_a_function_is_no_faster_than_itself(fake):
    text = "def f(x): launch('k', duration_us=30)\ng = f"
    assert comparison.speed(*fake(text)).verdict == "no difference"


def test_launches_take_the_time_where_kernels_are_shorter(fake):
    one, two = fake("def f(x):\n    launch('a')\n    launch('b')\ndef g(x): launch('c')")
    assert one.timing.samples_ns[0] == pytest.approx(20_000)
    assert two.timing.samples_ns[0] == pytest.approx(10_000)


def test_memory_is_what_a_call_holds_at_its_peak(fake):
    one, two = fake("def f(x): allocate(1000)\ndef g(x): allocate(10)")
    assert (one.peak_memory, two.peak_memory) == (1000, 10)


def test_a_kernels_time_is_the_median_of_several_calls(fake):
    outcome, _ = fake("""
calls = 0
def f(x):
    global calls
    calls += 1
    launch("k", duration_us=100 if calls in (4, 5) or calls % 97 == 0 else 10)
g = f
""")
    assert [r.duration_ns for r in outcome.records] == [10_000]


@pytest.mark.parametrize("after", [2, 3, 4, 5, 6, 12, 24], ids=lambda n: f"{n} calls")
@pytest.mark.parametrize("which", ["f", "g"])
def test_a_variant_that_raises_costs_its_own_times_and_no_count(fake, which, after):
    """However late it raises: while results are compared, times taken, or kernels profiled."""
    one, two = fake(f"""
calls = dict(f=0, g=0)
def call(name, x):
    launch("k", duration_us=50)
    calls[name] += 1
    if name == {which!r} and calls[name] > {after} + 4:
        raise ValueError("tired")
    return x
def f(x): return call("f", x)
def g(x): return call("g", x)
""")
    failed, other = (one, two) if which == "f" else (two, one)
    assert (one.count("kernel"), two.count("kernel")) == (1, 1)
    assert failed.timing is failed.numerics is failed.peak_memory is None
    assert codes(failed) == ["not-timed"]
    assert "ValueError: tired" in failed.notes[0].detail
    assert len(other.timing.samples_ns) >= 8
    assert other.timing.together == (other.name,)
    assert "not-timed" not in codes(other)


@pytest.fixture
def launch_costs(monkeypatch):
    """Stands in for the measurement; what it was asked for."""
    asked = []

    def costs(device, name, *, compiling):
        asked.append((device.kind, compiling))
        return LaunchCosts(5_000, 20_000, 30_000 if compiling else None)

    monkeypatch.setattr(launching, "costs", costs)
    _launch_costs.cache_clear()
    yield asked
    _launch_costs.cache_clear()


IDLE = "import time\ndef f(x):\n    launch('k', duration_us=1); time.sleep(1e-4)\ng = f"
BUSY = "def f(x): launch('k', duration_us=500)\ng = f"


def test_what_launching_costs_is_measured_where_the_gpu_is_idle(fake, launch_costs):
    one, two = fake(IDLE)
    assert launch_costs == [("fake", False)]
    assert one.timing.launching == two.timing.launching == LaunchCosts(5_000, 20_000)


def test_once_in_a_process(fake, launch_costs):
    fake(IDLE)
    fake(IDLE)
    assert len(launch_costs) == 1


@pytest.mark.parametrize("known", [True, False])
def test_and_not_where_the_gpu_is_busy_or_it_is_known(fake, launch_costs, known, monkeypatch):
    kept = Rates("fake device", "2", 1, eager_ns=5e3, compiled_ns=2e4) if known else None
    monkeypatch.setattr(rates, "kept", lambda *_: kept)
    one, _ = fake(IDLE if known else BUSY)
    assert launch_costs == []
    assert one.timing.launching is None


def test_inputs_that_fit_into_the_cache_are_told_unless_it_is_kept_cold(fake, monkeypatch):
    monkeypatch.setattr(fake_device, "cache", 100)
    text = "seen = set()\ndef f(x): launch('k'); seen.add(x.data_ptr())\ng = f"
    assert "served-by-l2" in codes(fake(text)[0])
    assert "served-by-l2" not in codes(fake(text, cold=True)[0])
    assert "served-by-l2" not in codes(fake(text, sizes=(64,))[0])


def test_who_does_something_else_meanwhile_is_told_when_times_are_taken(target, monkeypatch):
    monkeypatch.setenv("KERNELCOUNT_FAKE_DEVICE", "1")
    path = target(HEAD + "def f(x): launch('k')")
    told = []

    class Other:
        def ready(self, environment):
            told.append(environment.kind)

        def timing(self, on):
            told.append(on)

    job = Job(f"{path}:f", sizes=(4, 5), variants=("eager",), device="fake", seconds=0.01)
    runners.in_process(job, lambda _: None, Other())
    assert told == ["fake", True, False, True]


def test_a_call_that_takes_longer_than_allowed_is_made_few_times_more(fake):
    text = "calls = []\ndef f(x):\n    launch('k'); calls.append(1); time.sleep(0.05)\ng = f"
    seldom, _ = fake(f"import time\n{text}", seconds=0.01)
    assert len(seldom.timing.samples_ns) == 1
    assert codes(seldom) == ["imprecise"]
    assert "timed once, too seldom to tell which is faster" in seldom.notes[0].detail


def test_the_seconds_that_are_said_to_be_enough_are_enough(fake):
    text = "import time\ndef f(x):\n    launch('k'); time.sleep(0.01)\ng = f"
    first, second = fake(text, seconds=0.03)
    assert comparison.speed(first, second) is None
    (said,) = re.findall(r"--seconds (\d+) is enough", first.notes[0].detail)
    first, second = fake(text, seconds=float(said))
    assert comparison.speed(first, second) is not None


def test_without_seconds_nothing_is_timed(fake):
    one, _ = fake("def f(x): launch('k')\ng = f", seconds=0)
    assert one.timing is one.numerics is one.peak_memory is None


def test_a_remembered_result_is_not_timed(fake):
    one, two = fake("""
known = {}
def f(x):
    if x.data_ptr() not in known:
        launch("softmax")
        known[x.data_ptr()] = 1
def g(x):
    launch("softmax")
""")
    assert one.timing is None
    assert two.timing.together == (two.name,)


# ── results, on the CPU ──────────────────────────────────────────────────────────────────────────


@pytest.fixture
def results(count, target):
    """How another implementation's results compare with eager's, on the CPU."""

    def compared(text, **options):
        path = target(text) if "\n" in text else text
        options = {"sizes": (8,), "seconds": 0.01, **options}
        return count(f"{path}:f", "eager", f"{path}:g", **options)[f"{path}:g"].numerics

    return compared


def test_the_same_function_gives_equal_results(results):
    assert results("def f(x): return {'y': x.relu()}\ng = f\n").verdict == "equal"


def test_another_result_is_different(results):
    found = results("def f(x): return x\ndef g(x): return x + 1\n")
    assert (found.verdict, found.tensors, found.max_abs) == ("different", 1, 1.0)
    assert found.differs == "values"


@pytest.mark.parametrize("reference", [False, True])
@pytest.mark.parametrize(
    ("one", "other", "differs"),
    [
        ("x + 1, 3", "x + 1, 4", "numbers"),
        ("x + 1, 3.0", "x + 1, 4.0", "numbers"),
        ("x + 1, True", "x + 1, False", "numbers"),
        ("x + 1, 3", "x + 1, 3, 4", "numbers"),
        ("x + 1, x", "x + 1,", "count"),
        ("x + 1, x[:3]", "x + 1, x[:4]", "shape"),
        ("x + 1, x", "x + 1, x.double()", "dtype"),
        ("x + 1, x / 0", "x + 1, x", "placement"),
        ("x + 1, x.long()", "x + 1, x.long() + 1", "values"),
    ],
)
def test_results_that_differ_beside_a_tensor_that_agrees_are_never_close(
    results, one, other, differs, reference
):
    text = f"def f(x): return {one}\ndef g(x): return {other}\n"
    found = results(text, reference=reference)
    assert (found.verdict, found.differs) == ("different", differs)


def test_a_gradient_that_is_rounded_is_held_against_its_own_in_float64(results):
    text = """
def f(x):
    return ((x + 1e4) - 1e4).square().sum()
def g(x):
    return ((x + 1.001e4) - 1.001e4).square().sum()
"""
    found = results(text, backward=True, reference=True)
    assert found.error is not None
    assert found.base_error > 1e-6


def test_what_a_generator_yields_is_said_not_to_be_compared(results):
    found = results("def f(x):\n    yield x\ng = f\n")
    assert (found.verdict, found.notes) == (
        "nothing",
        ("what it yields is not kept, and so not compared",),
    )


def test_which_argument_was_changed_otherwise_is_said(results):
    text = "def f(x): x.mul_(2); return x + 1\ndef g(x): x.mul_(3); return x / x + x * 2 / 3\n"
    assert "beyond the tolerance: argument 1 afterwards" in results(text).notes


def test_one_variant_alone_is_held_against_float64_where_that_is_asked(count, target):
    path = target("def f(x): return (x + 1e4) - 1e4\n")
    found = count(f"{path}:f", "eager", sizes=(8,), seconds=0.01, reference=True)["eager"]
    assert found.numerics.base_error == found.numerics.error > 1e-6


def test_a_function_that_does_not_run_in_float64_is_said_to_have_no_reference(results):
    text = """
def f(x):
    if x.dtype is torch.float64:
        raise TypeError
    return x + 1
def g(x):
    return 1 + x
"""
    found = results(text, reference=True)
    assert (found.verdict, found.error) == ("equal", None)
    assert any("does not run in float64" in note for note in found.notes)


@pytest.mark.parametrize(("other", "verdict"), [("add_(x)", "equal"), ("mul_(3)", "different")])
def test_arguments_that_are_changed_are_results_too(results, other, verdict):
    found = results(f"def f(x): x.mul_(2)\ndef g(x): x.{other}\n")
    assert (found.verdict, found.tensors) == (verdict, 1)


def test_a_function_that_gives_nothing_is_not_called_equal(results):
    assert results("def f(x): x + 1\ng = f\n").verdict == "nothing"


@pytest.mark.parametrize(("draw", "verdict"), [("randn_like", "equal"), ("rand_like", "random")])
def test_random_functions_are_compared_with_the_same_numbers_or_not_at_all(results, draw, verdict):
    text = f"def f(x): return torch.randn_like(x)\ndef g(x): return torch.{draw}(x)\n"
    assert results(text).verdict == verdict


@pytest.mark.parametrize(
    ("one", "other", "verdict", "differs"),
    [
        ("torch.rand(3)", "torch.rand(4)", "different", "shape"),
        ("torch.rand(3), x", "torch.rand(3)", "different", "count"),
        ("torch.rand(3), x + 1", "torch.rand(40)[:3] * 2, x + 2", "different", "values"),
        ("torch.rand(3), x + 1", "torch.rand(40)[:3] * 2, x + 1", "random", None),
        ("torch.rand(3), 1", "torch.rand(40)[:3] * 2, 2", "different", "numbers"),
        ("x[torch.rand(8) > 0.5]", "x[torch.rand(80)[:8] * 2 > 0.5]", "random", None),
    ],
)
def test_only_what_depends_on_random_numbers_is_excused_by_them(
    results, one, other, verdict, differs
):
    found = results(f"def f(x): return {one}\ndef g(x): return {other}\n")
    assert (found.verdict, found.differs) == (verdict, differs)


DROPOUT = "torch.nn.functional.dropout(x, {})"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (DROPOUT.format(0.5), DROPOUT.format(0.5) + " * 7"),
        (DROPOUT.format(0.5), DROPOUT.format(0.1)),
        ("torch.rand(3)", "torch.rand(3) + 5"),
        ("torch.randn(4) + x[:4]", "torch.randn(4) + x[:4] * 2"),
        ("x[torch.rand(8) > 0.5]", "x[torch.rand(8) * 2 > 0.5]"),
        ("x * random.random()", "x * -random.random()"),
        ("x * numpy.random.rand()", "x * numpy.random.rand() + 1"),
        ("random.random()", "random.random() + 1"),
    ],
)
def test_where_both_draw_the_same_random_numbers_a_difference_is_one(results, one, other):
    text = f"import random, numpy\ndef f(x): return {one}\ndef g(x): return {other}\n"
    assert results(text).verdict == "different"


def test_rounding_beside_the_same_random_numbers_is_not_held_against_others(results):
    text = """
def f(x): return torch.randn(64).sum() + x
def g(x): return torch.randn(64).flip(0).sum() + x
"""
    assert results(text, sizes=(64,)).verdict in ("equal", "close")


def test_code_that_a_function_compiles_itself_draws_others():
    def drop(x):
        return torch.nn.functional.dropout(x, 0.5) + 1

    found = kernelcount.compare(
        drop,
        torch.ones(64),
        variants=["eager", torch.compile(drop, backend="aot_eager")],
        device="cpu",
        seconds=0.05,
    )
    assert found[1].numerics.verdict in ("equal", "random")


def test_a_function_that_keeps_state_is_not_compared(results):
    found = results("""
calls = 0
def f(x):
    global calls
    calls += 1
    return x + calls
def g(x): return 1.0 * f(x)
""")
    assert found.verdict == "unknown"
    assert "two calls of the first variant differ" in found.notes[0]


@pytest.mark.parametrize("value", ["-1e9", "torch.finfo(x.dtype).min"])
@pytest.mark.parametrize(
    ("other", "verdict"), [("x * 0", "different"), ("(x + 3e4) - 3e4", "close")]
)
def test_a_mask_of_large_numbers_excuses_nothing_and_condemns_nothing(
    results, value, other, verdict
):
    mask = f".masked_fill(x > 1, {value})"
    text = f"def f(x): return ((x + 1e4) - 1e4){mask}\ndef g(x): return ({other}){mask}\n"
    assert results(text, sizes=(64,)).verdict == verdict


@pytest.mark.parametrize(
    ("other", "verdict"),
    [("x - x.mean()", "close"), ("x - x.mean() + 1e-3", "different")],
)
def test_a_sum_that_cancels_is_rounding_and_another_is_not(results, other, verdict):
    text = (
        f"def f(x): return (x - x.mean()).sum()\ndef g(x): return ({other}).flip(0).cumsum(0)[-1]"
    )
    assert results(text, sizes=(1 << 20,)).verdict == verdict


MODEL = """
import torch
class Scale(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(8))
        self.register_buffer("seen", torch.zeros(8))
    def forward(self, x):
        self.seen += x.detach()
        return x * self.w
class Wrong(Scale):
    def forward(self, x):
        self.seen += x.detach() * {seen}
        y = x * self.w
        return y.detach() + {gradient} * (y - y.detach())
f, g = Scale(), Wrong()
"""


@pytest.mark.parametrize(
    ("seen", "gradient", "said"),
    [
        (1, 1, ""),
        (1, 3, "the gradient of w"),
        (2, 1, "seen afterwards"),
    ],
)
def test_gradients_and_buffers_of_a_module_are_results(results, seen, gradient, said):
    found = results(MODEL.format(seen=seen, gradient=gradient), backward=True)
    assert found.verdict == ("different" if said else "equal")
    assert any(said in note for note in found.notes) or not said


def test_gradients_of_a_parameter_in_a_global_are_results(results):
    found = results(
        """
import torch
w = torch.nn.Parameter(torch.ones(8))
def f(x): return x * w
def g(x): return (x * w).detach() + 3 * (x * w - (x * w).detach())
""",
        backward=True,
    )
    assert found.verdict == "different"
    assert "the gradient of tensor 1 that is reached" in found.notes[0]


def test_nested_tensors_are_compared_and_timed(count, target):
    path = target("""
import torch
def f(x): return torch.nested.nested_tensor([x, x[:3]])
g = f
""")
    found = count(f"{path}:f", "eager", f"{path}:g", sizes=(8,), seconds=0.05)[f"{path}:g"]
    assert found.numerics.verdict == "equal"
    assert found.timing is not None


def test_a_reference_in_float64_says_who_is_nearer_to_the_truth(results):
    text = """
def f(x):
    return (x + 1e4) - 1e4
def g(x):
    return x.clone()
"""
    found = results(text, reference=True)
    assert found.error < found.base_error
    assert found.verdict == "close"


def test_gradients_are_results_where_it_goes_backward(results):
    text = "def f(x): return (x * x).sum()\ndef g(x): return (x.detach() * x * 1.5).sum() * 1.0\n"
    assert results(text, backward=True).verdict == "different"


@pytest.mark.parametrize(
    ("file", "name", "verdict"),
    [
        ("FC47_dropout.py", "drop", "random"),
        ("FC48_inplace_input.py", "bump_", "equal"),
        ("FC48_inplace_input.py", "grow_", "equal"),
        ("FC50_bf16_chain.py", "rotary", "close"),
        ("FC50_bf16_chain.py", "amax_scale", "equal"),
        ("FC51_nan_and_inf.py", "masked_softmax", "close"),
        ("FC55_strided_inputs.py", "floor_div", "equal"),
        ("FC55_strided_inputs.py", "copy_t", "equal"),
    ],
)
def test_field_cases_compiled_beside_eager(count, file, name, verdict):
    found = count(f"{CASES / file}:{name}", "eager", "compile", seconds=0.01)["compile"]
    assert found.numerics.verdict == verdict
    assert found.numerics.tensors > 0
    expected = {"masked_softmax": "8 NaN in the same places", "floor_div": "strides"}.get(name, "")
    assert any(expected in note for note in found.numerics.notes) or not expected


def test_bf16_that_rounds_is_held_against_float64(count):
    spec = f"{CASES / 'FC50_bf16_chain.py'}:rotary"
    found = count(spec, "eager", "compile", seconds=0.01, reference=True)["compile"].numerics
    assert 0 < found.error < found.base_error < 0.016


@pytest.mark.parametrize("name", EXPECT)
def test_every_kind_of_result_is_compared(count, name):
    spec = f"{CASES / 'FC52_return_kinds.py'}:{name}"
    found = count(spec, "eager", "compile:backend=eager", seconds=0.01)
    numerics = found["compile:backend=eager"].numerics
    assert numerics.tensors == EXPECT[name]
    assert numerics.verdict == ("equal" if EXPECT[name] else "nothing")
    shares = "the result shares memory with an argument"
    assert (shares in numerics.notes) == (name in ("ret_input", "ret_view"))


def test_a_remembered_result_is_no_winner(count):
    spec = f"{CASES / 'FC59_memoised_result.py'}:sly_softmax"
    found = count(spec, "eager", seconds=0.01)["eager"]
    assert "memoised" in codes(found)
    assert found.timing is None


@pytest.mark.parametrize(
    "error",
    [RuntimeError("[enforce fail] you tried to allocate 40 bytes"), MemoryError()],
    ids=["torch's", "Python's"],
)
def test_where_the_copies_find_no_room_the_times_stand(count, target, monkeypatch, error):
    def no_room(*_):
        raise error

    monkeypatch.setattr(agreement, "compare", no_room)
    path = target("def f(x): return x + 1\ng = f")
    found = count(f"{path}:f", "eager", f"{path}:g", sizes=(8,), seconds=0.05)[f"{path}:g"]
    assert found.numerics.verdict == "unknown"
    assert "no memory" in found.numerics.notes[0]
    assert found.timing is not None


@pytest.mark.parametrize("raises", [False, True])
def test_the_users_settings_are_as_they_were_also_after_an_error(count, target, raises):
    import torch

    path = target(f"""
calls = 0
def f(x):
    global calls
    calls += 1
    torch.set_default_dtype(torch.float64)
    torch.use_deterministic_algorithms(True)
    torch.compiler.set_stance("force_eager")
    torch.set_grad_enabled(False)
    torch.manual_seed(1)
    if {raises} and calls > 7:
        raise ValueError
    return x + 1
""")
    torch.manual_seed(3)
    before = torch.get_rng_state()
    found = count(f"{path}:f", "eager", sizes=(8,), seconds=0.05)["eager"]
    assert ("not-timed" in codes(found)) == raises
    assert torch.get_default_dtype() is torch.float32
    assert not torch.are_deterministic_algorithms_enabled()
    assert torch.is_grad_enabled()
    assert torch.equal(torch.get_rng_state(), before)
    compiled = []
    torch.compile(lambda x: x + 1, backend=lambda graph, _: compiled.append(1) or graph)(
        torch.ones(1)
    )
    assert compiled


def test_the_users_random_numbers_gradients_and_settings_are_as_they_were(count, target):
    import torch

    torch.manual_seed(3)
    before = torch.get_rng_state()
    path = target("def f(x): return torch.nn.functional.dropout(x)")
    count(f"{path}:f", "eager", "compile:backend=eager", sizes=(8,), seconds=0.01)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    "numbers", ["random.random()", "numpy.random.rand()", "torch.rand(()).item()"]
)
def test_random_numbers_of_every_kind_are_the_same_for_all(results, numbers):
    text = f"import random, numpy\ndef f(x): return x + {numbers}\ng = f\n"
    assert results(text).verdict == "equal"


@pytest.mark.parametrize("numbers", ["random.random()", "numpy.random.rand()"])
def test_random_numbers_of_every_kind_are_seen_to_be_drawn(results, numbers):
    text = f"import random, numpy\ndef f(x): return x + {numbers}\n"
    text += f"def g(x): return x + {numbers} * {numbers}\n"
    assert results(text).verdict == "random"


DIRTY = """
seen = []
def f(x):
    torch.set_default_dtype(torch.float64)
    torch.use_deterministic_algorithms(True)
    torch.set_float32_matmul_precision("medium")
    torch.set_grad_enabled(False)
    torch.set_autocast_enabled("cpu", True)
    return x + 1
def g(x):
    seen.append((
        torch.get_default_dtype(), torch.are_deterministic_algorithms_enabled(),
        torch.get_float32_matmul_precision(), torch.is_grad_enabled(),
        torch.is_autocast_enabled("cpu"),
    ))
    return x + torch.ones(len(x))
"""


@pytest.mark.parametrize("order", ["fg", "gf"])
def test_what_one_variant_sets_is_not_set_for_another(count, target, order, monkeypatch):
    import torch

    path = target(DIRTY)
    first, second = (f"{path}:{name}" for name in order)
    found = count(f"{path}:f", first, second, sizes=(8,), seconds=0.05)
    (module,) = [m for m in sys.modules.values() if getattr(m, "__file__", None) == str(path)]
    assert len(module.seen) > 10
    assert set(module.seen) == {(torch.float32, False, "highest", True, False)}
    assert found[second].numerics.verdict == "equal"
    assert len(found[second].timing.samples_ns) > 0


def test_what_a_variant_sets_once_stays_set_for_it(count, target):
    path = target("""
calls = {"f": 0, "g": 0}
def f(x):
    calls["f"] += 1
    if calls["f"] == 7:
        torch.set_default_dtype(torch.float64)
    wanted = torch.float64 if calls["f"] >= 7 else torch.float32
    assert torch.get_default_dtype() == wanted, calls
    return x + 1
def g(x):
    assert torch.get_default_dtype() == torch.float32
    return x + 1
""")
    for outcome in count(f"{path}:f", "eager", f"{path}:g", sizes=(8,), seconds=0.05).values():
        assert "not-timed" not in codes(outcome)


# ── interrupted ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("sizes", [(8,), (8, 9)], ids=["one size", "a sweep"])
@pytest.mark.parametrize("which", ["f", "g"])
@pytest.mark.parametrize("after", [1, 6, 9, 30], ids=lambda n: f"{n} calls")
def test_a_keyboard_interrupt_of_the_functions_passes_through_whenever_it_comes(
    count, target, which, after, sizes
):
    path = target(f"""
calls = dict(f=0, g=0)
def call(name, x):
    calls[name] += 1
    if name == {which!r} and calls[name] == {after}:
        raise KeyboardInterrupt
    return x + 1
def f(x): return call("f", x)
def g(x): return call("g", x)
""")
    with pytest.raises(KeyboardInterrupt):
        count(f"{path}:f", "eager", f"{path}:g", sizes=sizes, seconds=0.1)
