"""What graph breaks cost, on paper: small functions whose kernels can be counted by hand."""

import pytest
import torch

from kernelcount.errors import NotMeasuredError
from kernelcount.model import Break, Cost
from kernelcount.paper import adapter, rules, whole
from kernelcount.paper.log import Call

CODE = """
    def prints(a, b):
        c = a + b
        print("", end="")
        return c.relu()

    def twice(a, b):
        c = a + b
        print("", end="")
        c = c.relu()
        torch._dynamo.graph_break()
        return c * 2

    def inner(a):
        a = a + 1
        print("", end="")
        return a * 2

    def asks(a, b):
        return inner(a * b) + b

    def loops(a):
        for _ in range(3):
            a = a + 1
            print("", end="")
        return a * 2

    @torch.compiler.disable
    def apart(a):
        return a.sin()

    def calls(a):
        return apart(a + 1) * 2

    def reads(a):
        return torch.relu(a / (a.abs().max().item() + 1)) - 0.5

    def reads_last(a):
        return (a + 1).sum().item()

    def branches(a, b):
        c = a + b
        if c.sum() > 0:
            c = c * 2
        return c.relu()

    def casts(a, b):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            c = a @ b
            print("here")
            return c + 1

    def unlike(a, tag=[""]):
        tag[0] += "t"
        a = a + len(tag[0])
        print("", end="")
        return a * 2

    def logs(a):
        a = a + 1
        print("", a.sum().item(), end="")
        return a * 2

    def wastes(a):
        a.cos()
        a = a + 1
        print("", a.sum().item(), end="")
        return a * 2

    model = torch.nn.LayerNorm(64, device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def trains(a):
        optimizer.zero_grad()
        a = model(a)
        print("", a.max().item(), end="")
        loss = (a * 2).sin().sum()
        loss.backward()
        optimizer.step()
        print("", f"{loss}", end="")
        return loss.detach()

    def two_values(a):
        bool(a.min() > 0)
        bool(a.sum() > 0)
        return a + 1

    def masks(a):
        a = a * 2
        return a[a > 0] + 1

    def puts(a):
        b = a.clone()
        mask = b > 0
        b[mask] = a[mask] * 2
        return b + 1

    def searches(a):
        return torch.argwhere(a > 0) + 1

    def repeats(a):
        return torch.repeat_interleave(a, (a.abs() * 2).long()) + 1

    def cuts(a):
        return a[: int((a > 0).sum())] + 1

    still = torch.optim.SGD(model.parameters(), lr=0.0)  # so that each call picks as many

    def trains_on_some(a):
        still.zero_grad()
        a = model(a)
        loss = a[a > 0].mean()
        loss.backward()
        still.step()
        return loss.detach()

    weight = torch.ones(3, 8, device="cuda")

    def multiplies(a):
        rows = a.view(-1, 3)
        return rows[rows.sum(1) > 0] @ weight

    def tests_number(a):
        return a[:2].tolist()[0] * a

    def to_numpy(a):
        return a * float((a + 1).cpu().numpy()[0])

    def unbroken(a, b):
        return (a + b).relu()
"""
SQUARE = ("f32[64,64]", "f32[64,64]")


@pytest.fixture
def compiled(count, target):
    """The outcome of one function of CODE, compiled on paper."""
    path = target(CODE)

    def counted(name, variant="compile", **options):
        return count(f"{path}:{name}", variant, device="paper", **options)[variant]

    return counted


@pytest.mark.parametrize(
    ("name", "options", "kernels", "cost"),
    [
        ("prints", {}, 2, 1),  # add | relu; in one graph one kernel
        ("asks", {}, 4, 3),  # mul | add | mul | add
        ("loops", {}, 4, 3),  # the function is given up, and runs op by op
        ("calls", {}, 3, 2),  # add | sin, outside of any graph | mul
        ("prints", {"backward": True}, 3, 1),  # relu has a gradient to work out
        ("reads_last", {}, 2, 0),  # nothing comes after the break
        ("casts", {"inputs": SQUARE}, 4, 0),  # two casts, the product, add
    ],
)
def test_a_break_costs_what_the_same_as_one_graph_saves(compiled, name, options, kernels, cost):
    capture = compiled(name, **options)
    (found,) = capture.breaks
    assert capture.count("kernel") == kernels
    assert (found.cost.kernels, capture.breaks_cost.kernels) == (cost, cost)
    assert f"on paper {kernels} with the break and {kernels - cost} without" in found.cost.why


def test_of_two_breaks_it_is_told_what_each_costs_and_both_together(compiled):
    capture = compiled("twice")
    assert [b.cost.kernels for b in capture.breaks] == [1, 1]
    assert capture.breaks_cost == Cost(2, "on paper 3 with the breaks and 1 without")


def test_where_a_value_is_read_the_reading_stays(compiled):
    capture = compiled("reads")
    assert capture.breaks_cost.kernels == 0
    assert capture.breaks_cost.why.endswith("with what is read and printed taken into the graph")


@pytest.mark.parametrize(
    ("name", "cost"),
    [
        ("masks", 0),  # mul, gt | the mask | add: as one graph the same; so on an H200
        ("puts", 1),  # clone, gt | the mask | mul, put, add: mul goes in before the put
        ("searches", 0),
        ("repeats", 1),  # of its two library calls the second is written by Inductor
        ("cuts", 0),
    ],
)
def test_a_size_that_hangs_on_values_is_as_large_without_the_break(compiled, name, cost):
    capture = compiled(name, sizes=(66,))
    together = capture.breaks_cost
    assert together.kernels == cost, together.why
    assert together.why.startswith(f"on paper {capture.count('kernel')} with the break")


def test_a_training_step_on_what_a_mask_picks_is_told_of_too(compiled):
    capture = compiled("trains_on_some", sizes=(64,))
    told = {b.reason: b.cost for b in capture.breaks}
    assert told["nonzero: its size depends on values"].kernels is not None


@pytest.mark.parametrize(
    ("name", "why"),
    [
        # Its operands may be padded in one of the two alone: nobody knows whether they are.
        ("multiplies", "mm (perhaps padded, of fixed sizes) x1 with"),
        ("tests_number", "Tensor.tolist() with non-integer tensor"),
        ("to_numpy", "works on a CPU tensor without dimensions"),
    ],
)
def test_where_it_cannot_be_told_the_reason_is_one_to_understand(compiled, name, why):
    together = compiled(name, sizes=(66,)).breaks_cost
    assert together.kernels is None
    assert why in together.why
    assert "Error" not in together.why


def test_what_dynamo_checks_of_a_value_launches_nothing(compiled):
    assert compiled("two_values", sizes=(64,)).breaks_cost == Cost(
        2,
        "on paper 3 with the breaks and 1 without, with what is read and printed taken into the "
        "graph",
    )


def test_what_is_read_to_be_printed_is_made_without_the_break_too(compiled):
    capture = compiled("logs", sizes=(64,))
    # add and sum | mul; as one graph all in one kernel.
    assert capture.breaks_cost.kernels == 1
    assert capture.breaks_cost.why == (
        "on paper 2 with the breaks and 1 without, with what is read taken into the graph, and "
        "without what is printed"
    )


def test_where_nobody_uses_a_part_that_is_no_way(compiled):
    why = compiled("wastes", sizes=(64,)).breaks_cost.why
    assert why.endswith("; and some of what it computes nobody uses")


def test_of_a_training_step_it_is_told_what_those_breaks_cost_that_logging_makes(compiled):
    capture = compiled("trains", sizes=(64,))
    told = {b.reason: b.cost for b in capture.breaks}
    # Without it forward is one kernel and not two, backward two and not three; and no gradient of
    # what was read has to be filled with zeros.
    assert told["Tensor.item()"].kernels == 3
    assert told["Tensor.item()"].why.startswith(
        "on paper 7 with all breaks of this line and 4 without, with what is read taken into"
    )
    assert told["Tensor.backward()"].why.startswith("the graph breaks there also with")
    assert told["Optimizer.zero_grad"].why == "no graph was parted there in the counted call"
    assert capture.breaks_cost.why.startswith("some stay also with what is read")


def test_of_a_branch_on_a_value_it_cannot_be_told(compiled):
    capture = compiled("branches")
    (found,) = capture.breaks
    assert found.reason == "branch on a tensor's value"
    assert found.cost.kernels is None
    assert "hangs on a value" in found.cost.why
    assert "Data-dependent branching" in found.cost.why


def test_at_the_recompile_limit_what_runs_is_eager_code_and_not_the_breaks(compiled):
    with torch._dynamo.config.patch(recompile_limit=2):
        capture = compiled("unlike")
    assert capture.breaks_cost.kernels is None
    assert "recompile_limit" in capture.breaks_cost.why


@pytest.mark.parametrize(
    ("variant", "why"),
    [
        ("compile:max-autotune", "autotuning"),
        ("compile:backend=eager", "only Inductor's kernels are counted"),
    ],
)
def test_of_what_paper_does_not_follow_it_cannot_be_told(compiled, variant, why):
    capture = compiled("prints", variant)
    assert len(capture.breaks) == 1
    assert capture.breaks_cost.kernels is None
    assert why in capture.breaks_cost.why


def test_of_many_ops_it_is_told_only_where_an_explanation_is_asked_for(compiled, monkeypatch):
    monkeypatch.setattr("kernelcount.capture.on_paper.MOST_OPS", 1)
    found = compiled("prints").breaks_cost
    assert found == Cost(None, "of more than 1 ops it takes long to tell: --explain does")
    assert compiled("prints", explain=True).breaks_cost.kernels == 1


GENERATED = Call("triton_poi_fused_0", rules.ONE, generated=True)


def open_call(name):
    return Call(name, rules.AT_LEAST_ONE)


def test_calls_that_are_others_without_the_break_are_named():
    trial = whole.Trial([open_call("extern_kernels.addmm"), GENERATED], whole=[open_call("mm")])
    at = Break("/a.py", 3, "f", "print")
    (found,), together = whole.costs(trial, (at,), list)
    assert (found.cost.kernels, found.cost) == (None, together)
    assert together.why.endswith("without the break: addmm x1 with, mm x1 without")


def test_calls_of_which_nobody_knows_how_many_kernels_they_are_may_stand_on_both_sides():
    trial = whole.Trial([open_call("mm"), GENERATED], whole=[open_call("mm")])
    _, together = whole.costs(trial, (Break("/a.py", 3, "f", "print"),), list)
    assert together == Cost(1, "on paper 2 with the break and 1 without")


def test_without_a_break_nothing_is_tried(compiled, monkeypatch):
    monkeypatch.setattr(whole, "tried", None)
    capture = compiled("unbroken")
    assert (capture.breaks, capture.breaks_cost) == ((), None)


def test_parts_that_come_to_something_else_are_not_believed(compiled, monkeypatch):
    monkeypatch.setattr(whole, "_kernels", id)
    capture = compiled("prints")
    assert capture.breaks_cost.kernels is None
    assert "when compiled by themselves" in capture.breaks_cost.why


def test_an_error_costs_the_answer_alone(compiled, monkeypatch):
    def fails(*_):
        raise ValueError("no such thing")

    monkeypatch.setattr(whole, "_Parts", fails)
    monkeypatch.setattr(whole, "_by_dynamo", fails)
    capture = compiled("prints")
    assert capture.count("kernel") == 2
    why = "without the break it could not be followed (ValueError)"
    assert capture.breaks_cost == Cost(None, why)


def test_eager_code_has_no_breaks_to_tell_of(count, target):
    capture = count(f"{target(CODE)}:prints", "eager", device="paper")["eager"]
    assert (capture.breaks, capture.recompilations) == (None, None)


def test_dynamos_graphs_say_where_they_broke_off():
    places = []

    def backend(graph, _):
        places.append(adapter.broke_at(graph))
        return graph

    def broken(x):
        x = x + 1
        torch._dynamo.graph_break()
        return x * 2

    torch.compile(broken, backend=backend)(torch.ones(4))
    line = broken.__code__.co_firstlineno + 2
    assert places == [(__file__, line), None]


def test_what_inductor_writes_no_code_for_without_the_break_is_told_in_plain_words():
    def lowered(calls):
        if calls != [GENERATED]:
            raise NotMeasuredError("GuardOnDataDependentSymNode: u0")
        return calls

    trial = whole.Trial([GENERATED], whole=[GENERATED, GENERATED])
    _, together = whole.costs(trial, (Break("/a.py", 3, "f", "print"),), lowered)
    assert together == Cost(None, "without the break Inductor of this torch writes no code for it")
