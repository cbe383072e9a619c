"""Remedies on a user's function: what is tried, what comes of it, and what it leaves alone."""

import sys
from contextlib import contextmanager

import pytest
import torch
from counting import codes

from kernelcount import app, remedies, runners, worker
from kernelcount.capture import Way
from kernelcount.errors import NotMeasuredError
from kernelcount.model import Job, Remedy
from kernelcount.remedies.facts import Attempt
from kernelcount.traces import saved
from kernelcount.variants import Variant

HEAD = "from kernelcount.devices.fake import launch\n"
USERS = HEAD + "def f(x):\n    launch('k', duration_us=400)\n    return x\n"


def row(to, *, why="", before=lambda: None, attempt=Attempt, **given):
    """A remedy that has `to` called instead of the function."""

    @contextmanager
    def work(facts):
        before()
        way = Way(Variant("a remedy", facts.way.variant.kind), facts.way.function, to)
        yield attempt(way, facts.subject, **given)

    return remedies.Kind("of a test", (), ("eager", "compile"), lambda _: why, work)


def fast(x):
    from kernelcount.devices.fake import launch

    launch("k", duration_us=100)
    return x


def off(x):
    return fast(x) + 1


def slow(x):
    return fast(fast(fast(fast(fast(x)))))


def fails(*_):
    raise ValueError("bad\nbatch")


@pytest.fixture
def fake(count, target, monkeypatch):
    """Try these remedies on a function of the fake device: the outcome, and remedies by name."""
    monkeypatch.setenv("KERNELCOUNT_FAKE_DEVICE", "1")

    def tried(rows, *variants, text=USERS, **options):
        monkeypatch.setattr(remedies, "REMEDIES", rows)
        options = {"sizes": (4,), "seconds": 0.1, "device": "fake", **options}
        outcome = count(f"{target(text)}:f", *variants, remedy=True, **options)["eager"]
        return outcome, {r.name: r for r in outcome.remedies}

    return tried


def test_what_is_faster_is_told_by_how_much_with_its_results_and_kernels(fake):
    _, found = fake({"a": row(fast)})
    remedy = found["a"]
    assert remedy.helped
    assert remedy.speed.ratio == pytest.approx(4.0)
    assert (remedy.numerics.verdict, remedy.kernels, remedy.reason) == ("equal", 1, "")


def test_what_is_slower_or_no_faster_is_no_help(fake):
    _, found = fake({"a": row(slow), "b": row(lambda x: slow(x) if False else _same(x))})
    assert found["a"].speed.verdict == "slower"
    assert found["b"].speed.verdict == "no difference"
    assert not found["a"].helped
    assert not found["b"].helped


def _same(x):
    from kernelcount.devices.fake import launch

    launch("k", duration_us=400)
    return x


def test_its_cost_is_measured_against_the_truth_where_it_changes_the_precision(fake):
    _, found = fake({"a": row(lambda x: off(x).bfloat16(), precise=False)})
    numerics = found["a"].numerics
    assert numerics.verdict == "different"
    assert numerics.error > 0.1
    assert numerics.base_error == 0.0


def test_what_does_not_apply_is_not_tried_and_says_why(fake):
    _, found = fake({"a": row(fails, why="there is no tensor core")})
    assert (found["a"].status, found["a"].reason) == ("not tried", "there is no tensor core")


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"to": fails}, "raised ValueError: bad"),
        ({"to": fast, "before": fails}, "raised ValueError: bad"),
        ({"to": fast, "before": lambda: sys.exit(3)}, "the function called sys.exit(3)"),
        ({"to": fast, "remark": lambda _: _refuse("it is none")}, "it is none"),
        ({"to": lambda x: torch.empty(1 << 60)}, "out of memory"),
    ],
)
def test_one_that_fails_costs_nothing_but_itself(fake, given, reason):
    outcome, found = fake({"a": row(**given), "b": row(fast)})
    assert found["a"].status == "failed"
    assert found["a"].reason.startswith(reason)
    assert found["a"].speed is None
    assert found["b"].helped
    assert outcome.count("kernel") == 1
    assert outcome.timing is not None
    assert codes(outcome) == []


def _refuse(text):
    raise NotMeasuredError(text)


def test_a_choice_that_fails_costs_the_remedies_alone(fake, monkeypatch):
    broken = remedies.Kind("of a test", (), ("eager",), fails, None)
    outcome, found = fake({"a": broken})
    assert (found["a"].status, found["a"].reason) == ("failed", "raised ValueError: bad")
    assert outcome.timing is not None


def test_what_spoils_it_stands_with_it(fake):
    _, found = fake({"a": row(fast, remark=lambda _: "CUDA graphs skipped")})
    assert (found["a"].status, found["a"].reason) == ("tried", "CUDA graphs skipped")


def test_a_function_that_could_not_be_timed_is_not_tried_on(fake):
    text = (
        HEAD
        + """
calls = 0
def f(x):
    global calls
    calls += 1
    launch("k")
    if calls > 8:
        raise ValueError("tired")
"""
    )
    outcome, found = fake({"a": row(fast)}, text=text)
    assert codes(outcome) == ["not-timed"]
    assert (found["a"].status, found["a"].reason) == ("not tried", "eager was not timed")


def test_a_variant_of_the_run_is_cited_and_not_timed_again(fake):
    compiled = "compile:backend=eager"
    text = "def f(x): return (x + 1).relu()"
    _, found = fake({compiled: row(fails)}, "eager", compiled, text=text, device="cpu")
    remedy = found[compiled]
    assert remedy.status == "tried"
    assert remedy.speed.verdict in ("slower", "faster", "no difference")
    assert remedy.numerics.verdict == "equal"


def test_what_ran_as_eager_code_is_no_remedy(fake):
    compiled = "compile:backend=eager"
    text = "def f(x):\n    yield x + 1"
    _, found = fake({compiled: row(fails)}, "eager", compiled, text=text, device="cpu")
    assert found[compiled].status == "failed"
    assert "ran as eager code" in found[compiled].reason


def test_a_variant_that_was_asked_for_and_failed_is_not_tried_again(fake):
    text = "def f(x):\n    print(x)\n    return x + 1"
    name = "compile:backend=eager,fullgraph"
    _, found = fake({name: row(fails)}, "eager", name, text=text, device="cpu")
    reason = f"the variant {name} was not timed in turn with eager"
    assert found == {name: Remedy(name, "not tried", reason)}


def test_remedies_come_one_after_the_other_over_all_variants_the_dangerous_last(target):
    tried = []
    rows = {
        "safe": row(fast, before=lambda: tried.append("safe")),
        "dangerous": row(fast, before=lambda: tried.append("dangerous")),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(remedies, "REMEDIES", rows)
        patch.setenv("KERNELCOUNT_FAKE_DEVICE", "1")
        job = Job(
            f"{target(USERS)}:f", sizes=(4,), device="fake", seconds=0.05, remedy=True,
            variants=("eager", "compile"),
        )  # fmt: skip
        app.run(job, runners.in_process, lambda _: None)
    assert tried in (["safe", "safe", "dangerous", "dangerous"], ["safe", "dangerous"])


def test_whoever_knows_what_holds_the_function_back_may_choose(fake, monkeypatch):
    chosen = {"b": "", "a": "nothing here waits for memory"}
    monkeypatch.setattr(remedies.tried, "__defaults__", (lambda _: chosen,))
    _, found = fake({"a": row(fails), "b": row(fast), "c": row(fails)})
    assert list(found) == ["b", "a"]
    assert found["b"].helped
    assert found["a"].reason == "nothing here waits for memory"


def test_without_the_flag_none_is_tried(count, target, monkeypatch):
    monkeypatch.setenv("KERNELCOUNT_FAKE_DEVICE", "1")
    spec = f"{target(USERS)}:f"
    assert count(spec, device="fake", sizes=(4,), seconds=0.05)["eager"].remedies == ()


# ── what is told on the way ──────────────────────────────────────────────────────────────────────


@pytest.fixture
def told(target, monkeypatch):
    """The remedies of each message about the first variant, and the sizes that were begun."""
    monkeypatch.setenv("KERNELCOUNT_FAKE_DEVICE", "1")

    def performed(rows, sizes=(4,)):
        monkeypatch.setattr(remedies, "REMEDIES", rows)
        messages = []
        job = Job(
            f"{target(USERS)}:f", sizes=sizes, device="fake", seconds=0.05, remedy=True,
            variants=("eager",),
        )  # fmt: skip
        worker.perform(job, 0, messages.append)
        done = [m for m in messages if isinstance(m, worker.Done)]
        captures = [saved.load(bytes(m.outcome), "")[0] for m in done]
        begun = [m.index for m in messages if isinstance(m, worker.Begin)]
        return [{r.name: r.reason for r in c.remedies} for c in captures], begun

    return performed


def test_a_process_that_dies_leaves_what_was_known_and_names_what_it_died_of(told):
    found, _ = told({"a": row(fast), "b": row(fast)})
    during, before = (
        "the process ended while this was tried", "the process ended before this was tried",
    )  # fmt: skip
    assert found == [
        {}, {}, {"a": during, "b": before}, {"a": "", "b": during}, {"a": "", "b": ""},
    ]  # fmt: skip


def test_after_a_failure_another_process_goes_on_with_the_next_size(told):
    assert told({"a": row(fast)}, sizes=(4, 8))[1] == [0, 1]
    assert told({"a": row(fails)}, sizes=(4, 8))[1] == [0]


# ── on the CPU, with the remedies that there are ─────────────────────────────────────────────────


@pytest.fixture
def cpu(count, target, monkeypatch):
    """Try on the CPU what applies there, compiling aside."""
    rows = {n: k for n, k in remedies.REMEDIES.items() if n != "compile"}
    monkeypatch.setattr(remedies, "REMEDIES", rows)

    def tried(text, name="f", **options):
        options = {"sizes": (8,), "seconds": 0.02, **options}
        outcome = count(f"{target(text)}:{name}", remedy=True, **options)["eager"]
        return {r.name: r for r in outcome.remedies}

    return tried


def test_a_cpu_has_neither_tf32_nor_cuda_graphs(cpu):
    found = cpu("def f(x): return x + 1")
    assert {n: r.reason for n, r in found.items() if r.status == "not tried"} == {
        "TF32": "TF32 is a precision of NVIDIA's GPUs",
        "compile:reduce-overhead": "CUDA graphs need an NVIDIA or AMD GPU",
        "CUDA graph": "CUDA graphs need an NVIDIA or AMD GPU",
    }


def test_bfloat16_is_tried_with_its_error_beside_the_original_one(cpu):
    numerics = cpu("def f(x): return (x * 1.1).exp()")["bf16"].numerics
    assert 1e-4 < numerics.error < 1e-1
    assert numerics.base_error < 1e-6


def test_a_module_is_as_it_was_afterwards_and_so_are_settings(cpu):
    precision = torch.get_float32_matmul_precision()
    text = """
kept = []
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)
        self.norm = torch.nn.BatchNorm1d(8)
        kept.append(self)
    def forward(self, x):
        return torch.nn.functional.dropout(self.norm(self.linear(x.view(1, 8).expand(4, 8))))
"""
    found = cpu(text, "Net")
    assert found["bf16"].status == "tried"
    net = next(
        m.kept[0] for m in list(sys.modules.values()) if isinstance(vars(m).get("kept"), list)
    )
    assert {p.dtype for p in net.parameters()} == {torch.float32}
    assert int(net.norm.num_batches_tracked) == 0
    assert all(p.grad is None for p in net.parameters())
    assert torch.get_float32_matmul_precision() == precision


def test_random_numbers_go_on_afterwards_as_if_nothing_had_been_tried(cpu):
    torch.manual_seed(3)
    before = torch.get_rng_state()
    cpu("def f(x): return torch.nn.functional.dropout(x)")
    assert torch.equal(torch.get_rng_state(), before)


def test_a_dtype_that_the_function_cannot_take_is_the_reason(cpu):
    found = cpu("w = torch.ones(8, 8)\ndef f(x): return x @ w")
    assert found["bf16"].status == "failed"
    assert "same dtype" in found["bf16"].reason


def test_where_it_goes_backward_gradients_are_results(cpu):
    found = cpu("def f(x): return (x * x).sum()", backward=True)["bf16"]
    assert (found.status, found.numerics.tensors) == ("tried", 2)


def test_arguments_that_are_changed_in_place_are_the_same_for_each_call(cpu):
    numerics = cpu("def f(x):\n    x.mul_(2)\n    return x")["bf16"].numerics
    assert numerics.error < 1e-1


def test_random_numbers_are_not_held_against_each_other(cpu):
    assert cpu("def f(x): return torch.rand_like(x)")["bf16"].numerics.verdict == "random"


def test_whole_numbers_are_not_made_narrower(cpu):
    found = cpu("def f(x: torch.Tensor): return x + 1", inputs=("i64[8]",), sizes=())
    assert found["bf16"].reason == "no input and no parameter is float32 or float64"
