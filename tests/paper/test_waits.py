"""Waits on paper: at the lines at which a GPU makes the CPU wait, and at no others."""

from pathlib import Path

import pytest
import torch
from counting import CASES, codes

from kernelcount import capture, rules
from kernelcount.model import Bounds, Unmeasured
from kernelcount.paper import reads, waits
from kernelcount.paper.compiled import named
from kernelcount.paper.waits import Pinned


@pytest.fixture
def waited(count, target):
    """Kind, op and line of each wait of a function; `line` counts from that of ``def f``."""

    def found(text, *variants, name="users.py", **options):
        path = target(text, name)
        lines = Path(path).read_text().splitlines()
        first = 1 + next(i for i, line in enumerate(lines) if line.startswith("def f("))
        options = {"sizes": (64,), **options}
        outcomes = count(path + ":f", *variants, device="paper", **options)
        return {
            name: [(s.kind, s.op, s.line - first) for s in outcome.syncs]
            for name, outcome in outcomes.items()
        }

    return found


# As measured on an H200 (torch 2.11): of each function the lines of its waits, eager and compiled.
MEASURED = {
    "FC14_hidden_syncs.py:by_item": ([5], [5]),
    "FC14_hidden_syncs.py:by_bool_mask": ([7], [7]),
    "FC14_hidden_syncs.py:by_scalar_tensor": ([10], []),
    "FC14_hidden_syncs.py:no_sync_full": ([], []),
    "FC44_item_breaks_graph.py:normalise": ([6], [6]),
}
IN_EAGER = {
    "FC14_hidden_syncs.py:by_nonzero": [6],
    "FC14_hidden_syncs.py:by_branch": [8],
    "FC14_hidden_syncs.py:by_tolist": [9],
    "FC14_hidden_syncs.py:by_repr": [11],
    "FC14_hidden_syncs.py:no_sync_where": [],
}


@pytest.mark.parametrize("spec", MEASURED)
def test_lines_are_those_that_were_measured_eager_and_compiled(count, spec):
    outcomes = count(f"{CASES / spec}", "eager", "compile", device="paper")
    lines = tuple(sorted({s.line for s in o.syncs}) for o in outcomes.values())
    assert lines == MEASURED[spec]
    assert all(s.idle_ns is None and s.seen_by == ("paper",)
               for o in outcomes.values() for s in o.syncs)  # fmt: skip


@pytest.mark.parametrize("spec", IN_EAGER)
def test_lines_are_those_that_were_measured_in_eager(count, spec):
    (outcome,) = count(f"{CASES / spec}", "eager", device="paper").values()
    assert sorted({s.line for s in outcome.syncs}) == IN_EAGER[spec]


def test_a_value_that_is_tested_is_a_bool_and_one_that_is_asked_for_an_item(waited):
    assert waited("""
def f(x):
    if x.any():
        x = x + 1
    y = x[0] if not x[1] else x[2]
    assert x[3] != 7
    return y, float(x[4]), x[5].item(), torch.equal(x, x + 1)
""") == {
        "eager": [
            ("bool", "is_nonzero", 1), ("bool", "is_nonzero", 3), ("bool", "is_nonzero", 4),
            ("item", "item", 5), ("item", "item", 5), ("bool", "equal", 5),
        ]
    }  # fmt: skip


def test_whatever_asks_whether_a_tensor_is_true_makes_a_bool(waited):
    assert waited("""
def f(x):
    a = bool(x[0])
    b = max(x[:2]) if x[1] else any([x[2] > 5])
    return x + a, 5 in x
""") == {
        "eager": [
            ("bool", "is_nonzero", 1), ("bool", "is_nonzero", 2), ("bool", "is_nonzero", 2),
            ("item", "item", 3),
        ]
    }  # fmt: skip


def inside(op, line, number=1):
    return [("inside an op", op, line)] * number


def test_values_that_ops_read_inside_of_themselves_are_waited_for(waited):
    assert waited("""
def f(x):
    drawn = torch.multinomial(x.softmax(-1), 1), torch.multinomial(x.softmax(-1), 3, True)
    if torch.allclose(x, x + 1):
        return x
    counted = x.histc(10), x.histc(10, 0, 1), x.abs().long().bincount()
    made = torch.normal(x, x.abs()), torch.normal(x, 1.0), torch.linspace(x[0], 5.0, 3)
    order = torch.searchsorted(x, x, sorter=x.argsort()), torch.searchsorted(x, x)
    return drawn, counted, made, order, torch.equal(x, x[1:])
""") == {
        "eager": [
            ("bool", "allclose", 2), *inside("histc", 4, 2), *inside("bincount", 4, 2),
            *inside("normal", 5, 2), *inside("linspace", 5), *inside("searchsorted", 6, 2),
        ]
    }  # fmt: skip


def test_rows_that_are_looked_for_once_are_waited_for_as_often_as_on_an_h200(waited):
    assert waited("""
def f(x):
    rows = x.view(8, 8)
    torch.unique(rows, dim=0)
    torch.unique_consecutive(rows, dim=0)
    torch.unique_consecutive(x)
    torch.ops.aten.unique_dim_consecutive(rows, 0)
""") == {
        "eager": [
            *inside("unique_dim", 2, 3), *inside("unique_consecutive", 3, 2),
            *inside("unique_consecutive", 4), *inside("unique_dim_consecutive", 5, 2),
        ]
    }  # fmt: skip


def test_a_number_on_the_gpu_is_waited_for_to_fill_by_a_mask(waited):
    assert waited("""
def f(x):
    y = x.masked_fill(x > 0, x[0])
    y.masked_fill_(y > 0, 0.0)
    y.masked_fill_(y > 0, x[1])
    y.fill_(x[0])
    torch.empty(8).fill_(x[0])
    return y.index_fill(0, x[:1].long(), x[0])
""") == {
        "eager": [
            ("item", "masked_fill", 1), ("item", "masked_fill_", 3), ("item", "fill_", 5),
            ("item", "index_fill", 6),
        ]
    }  # fmt: skip


def test_a_number_of_the_hosts_fills_by_a_mask_as_one_of_the_code_does(count, target):
    path = target("""
        def number(x):
            return x.masked_fill(x > 0, 2.0).masked_fill_(x < 0, 3.0)

        def tensor(x):
            return x.masked_fill(x > 0, torch.tensor(2)).masked_fill_(x < 0, torch.tensor(3.0))
    """)
    (number,), (tensor,) = (
        count(f"{path}:{name}", "eager", device="paper", sizes=(64,)).values()
        for name in ("number", "tensor")
    )
    assert (tensor.count("kernel"), tensor.count("copy"), tensor.syncs) == (4, 1, ())
    assert (tensor.paper.read, tensor.paper.written) == (number.paper.read, number.paper.written)
    assert codes(tensor) == codes(number)


def test_what_is_normal_in_given_memory_is_checked_once(waited):
    assert waited("""
def f(x):
    return torch.normal(x, x.abs(), out=torch.empty_like(x))
""") == {"eager": inside("normal", 1)}


def test_what_is_drawn_by_is_checked_by_the_gpu():
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU]) as run:
        torch.multinomial(torch.rand(5), 1)
    names = [event.name for event in run.events()]
    asked = names.count("aten::item"), names.count("aten::_assert_async")
    assert asked == (2, 2)  # the assertion is what asks, and on a GPU does not


def test_they_are_in_compiled_code_where_inductor_calls_the_op(waited):
    assert waited(
        """
def f(x):
    drawn = torch.multinomial(x.softmax(-1), 1), torch.multinomial(x.softmax(-1), 3, True)
    return drawn, x.histc(10)
""",
        "compile",
    ) == {"compile": inside("histc", 2, 2)}


OPEN = {
    "inverse": ("torch.linalg.inv(x.view(8, 8))", 1),
    "root": ("torch.linalg.cholesky(x.view(8, 8))", 1),
    "solution": ("torch.linalg.solve(x.view(8, 8), x[:8])", 1),
    "decomposition": ("torch.linalg.svd(x.view(8, 8))", 1),
    "eigenvalues": ("torch.linalg.eigh(x.view(8, 8))", 1),
    "factors": ("torch.linalg.lu_factor(x.view(8, 8))", 1),
    "most frequent": ("x.mode()", 0),
    "sets": ("torch.isin(x, x)", 0),
}


@pytest.mark.parametrize("what", OPEN)
def test_where_nobody_knows_how_often_an_op_waits_the_number_is_a_lower_bound(count, target, what):
    text, seen = OPEN[what]
    (outcome,) = count(target(f"def f(x): return {text}") + ":f", device="paper",
                       sizes=(64,)).values()  # fmt: skip
    assert len(outcome.syncs) == seen
    assert "syncs-at-least" in codes(outcome)
    reading = rules.read("syncs", rules.Counted(outcome))
    assert (reading.value, reading.at_least) == (seen, True)
    assert rules.status(reading, Bounds(high=seen)) == "undecided"


def test_in_compiled_code_too(count, target):
    path = target("""
def inverse(x):
    return torch.linalg.inv(x.view(8, 8)) + 1
""")
    (outcome,) = count(f"{path}:inverse", "compile", device="paper", sizes=(64,)).values()
    assert rules.read("syncs", rules.Counted(outcome)).at_least


@pytest.mark.parametrize("what", ["cuda", "accelerator"])
def test_to_wait_for_the_device_is_an_op_of_the_graph_or_a_break_or_nothing(count, target, what):
    text = f"""
def f(x):
    y = x + 1
    torch.{what}.synchronize()
    return y * 2
"""
    outcome = count(target(text) + ":f", "compile", device="paper")["compile"]
    at = [(s.kind, s.line) for s in outcome.syncs]
    breaks, kernels = len(outcome.breaks), outcome.count("kernel")
    if torch.__version__.startswith("2.11."):  # as on an H200 with torch 2.11
        assert (breaks, kernels, at) == (
            (1, 2, [("explicit", 5)]) if what == "cuda" else (0, 1, [])
        )
    else:
        assert (breaks, kernels, at) == (0, 1, [("explicit", 5)])
    assert not {"at-least", "syncs-at-least"} & {*codes(outcome)}


def test_a_stream_of_the_modules_is_not_followed_in_compiled_code_in_a_second_count(count, target):
    path = target("""
stream = torch.cuda.Stream()


def f(x):
    y = x + 1
    stream.synchronize()
    return y * 2
""")
    for _ in range(2):
        outcome = count(path + ":f", "compile", device="paper")["compile"]
        assert outcome.reason.startswith("a stream in compiled code")


def test_memory_that_compiled_code_pins_is_told_of_in_plain_words(count, target):
    text = """
kept = torch.ones(64)


def f(x):
    return x + kept.pin_memory().to("cuda", non_blocking=True)
"""
    outcome = count(target(text) + ":f", "compile", device="paper", sizes=(64,))["compile"]
    assert outcome.reason.startswith("torch.compile fails at Tensor.pin_memory(), on a GPU too")


CAPTURED = """
import torch._dynamo

torch._dynamo.config.capture_dynamic_output_shape_ops = True
calls = [0]


def f(x):
    y = x[x > 0]
    return y.sort().values + 1


def g(x):
    calls[0] += 1
    w = x.detach()[: 13 + calls[0] % 2 * 4].requires_grad_()
    (w * 2).square().mean().backward()
    return w.grad
"""


def test_a_mask_in_a_graph_is_searched_once_and_waited_for(waited, count, target):
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        outcome = count(target(CAPTURED) + ":f", "compile", device="paper", sizes=(64,))["compile"]
    names = [w.label for w in outcome.records.works if w.label]
    assert [(s.kind, s.op) for s in outcome.syncs] == [("mask", "index")]
    assert outcome.breaks == ()
    eager = count(target(CAPTURED) + ":f", device="paper", sizes=(64,))["eager"]
    by_name = {n: sum(r.count for r in o.rows() if r.label == n) for n in names for o in (outcome,)}
    assert by_name == {n: sum(r.count for r in eager.rows() if r.label == n) for n in names}


def test_a_graph_for_any_size_runs_for_another_than_it_was_compiled_for(count, target):
    outcome = count(target(CAPTURED) + ":g", "compile", device="paper", sizes=(64,))["compile"]
    assert outcome.count("kernel") > 0


def test_what_needs_values_that_nothing_here_knows_of_may_wait(count, target, monkeypatch):
    monkeypatch.delitem(reads._BY_NAME, "allclose")
    (outcome,) = count(target("def f(x): return torch.allclose(x, x + 1)") + ":f",
                       device="paper", sizes=(64,)).values()  # fmt: skip
    assert outcome.syncs == ()
    assert "syncs-at-least" in codes(outcome)


def test_gradients_that_hang_on_values_may_wait(count, target):
    (outcome,) = count(target("def f(x): return x.prod()") + ":f", device="paper", sizes=(8,),
                       backward=True).values()  # fmt: skip
    assert "syncs-at-least" in codes(outcome)


@pytest.mark.parametrize(
    "text",
    [
        "x.quantile(0.5)",
        "torch.linalg.vector_norm(x)",
        "torch.linalg.solve_triangular(x.view(8, 8), x.view(8, 8), upper=True)",
        "torch.isin(x, x[:1])",
    ],
)
def test_what_reads_nothing_does_not_wait(count, target, text):
    (outcome,) = count(target(f"def f(x): return {text}") + ":f", device="paper",
                       sizes=(64,)).values()  # fmt: skip
    assert outcome.syncs == ()
    assert "syncs-at-least" not in codes(outcome)
    assert not any("Tensor.__repr__" in note.detail for note in outcome.notes)


def test_each_mask_is_searched_and_one_that_a_number_is_put_under_is_not(waited):
    assert waited("""
def f(x):
    x[x > 0] = 0.0
    x[x > 1] = x[x > 1] * 2
    return x.masked_select(x > 0), torch.where(x > 0)
""") == {
        "eager": [
            ("mask", "index", 2), ("mask", "index_put_", 2), ("mask", "masked_select", 3),
            ("nonzero", "nonzero", 3),
        ]
    }  # fmt: skip


COPIES = """
def make_inputs(n=None, device="cpu"):
    return (torch.randn(64),)


def f(x):
    a = x.to("cuda") + torch.tensor(3.0, device="cuda")
    b = x.to("cuda", non_blocking=True)
    c = x.pin_memory().to("cuda", non_blocking=True)
    d = x.pin_memory().cuda()
    e = torch.empty(64, pin_memory=True)
    e.copy_(a, non_blocking=True)
    x.copy_(a, non_blocking=True)
    return b.cpu(), c.to("cpu", non_blocking=True), d.tolist(), torch.empty(64).copy_(a)
"""


def test_copies_are_waited_for_unless_they_need_not_be(waited):
    assert waited(COPIES, sizes=()) == {
        "eager": [
            ("pageable copy", "to", 1), ("pageable copy", "to", 1), ("copy to device", "to", 4),
            ("copy to host", "copy_", 7), ("copy to host", "to", 8), ("copy to host", "to", 8),
            ("copy to host", "copy_", 8),
        ]
    }  # fmt: skip


def test_numbers_of_the_code_cannot_be_pinned_and_no_advice_says_so(count, target, kernelcount):
    path = target("""
def make_inputs(n=None, device="cpu"):
    return torch.randn(64, device=device), torch.randn(64)


def f(x, host):
    x[2] = 5.0
    x[torch.zeros(2, dtype=torch.int64, device="cuda")] = 1
    y = torch.tensor([1.0], device="cuda"), x.new_tensor([1.0]), torch.as_tensor(1, device="cuda")
    return y, torch.as_tensor(host, device="cuda"), host.to("cuda")
""")
    (outcome,) = count(path + ":f", device="paper", sizes=()).values()
    assert {s.kind for s in outcome.syncs} == {"pageable copy"}
    assert [(s.line, s.hideable) for s in outcome.syncs] == [
        (8, False), (9, False), *[(10, False)] * 3, *[(11, True)] * 2,
    ]  # fmt: skip
    _, out, _ = kernelcount("run", path + ":f", "--device", "paper", "--variant", "eager", "--full")
    assert "would hide the copies at users.py:11." in out


def test_what_is_asked_to_wait_for_is_told_too(waited):
    assert waited("""
def f(x):
    event = torch.cuda.Event()
    event.record()
    event.synchronize()
    torch.cuda.synchronize()
    torch.cuda.current_stream().synchronize()
    return x + 1
""") == {
        "eager": [
            ("explicit", "Event.synchronize", 3), ("explicit", "torch.cuda.synchronize", 4),
            ("explicit", "Stream.synchronize", 5),
        ]
    }  # fmt: skip


def test_ops_that_must_know_how_much_there_is_wait_inside(waited):
    found = waited("""
def f(x):
    repeats = torch.ones(64, dtype=torch.int64, device=x.device)
    x.repeat_interleave(repeats, output_size=64)
    return x.unique(), x.repeat_interleave(repeats)
""")
    # Of those that are repeated both the sum and whether any is negative are read.
    assert found["eager"] == [
        ("inside an op", "_unique2", 3), *[("inside an op", "repeat_interleave", 3)] * 2
    ]  # fmt: skip


TRAINING = """
model = torch.nn.Linear(64, 64, device="cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def make_inputs(n=None, device="cpu"):
    return (torch.randn(8, 64),)


def f(batch):
    loss = model(batch.to("cuda"{how})).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    {check}
    return loss.detach(){metric}
"""


def test_a_training_step_has_the_waits_that_stand_in_it_and_cured_none(waited):
    bad = TRAINING.format(how="", check="assert not loss.isnan()", metric=".cpu()")
    assert waited(bad, sizes=()) == {
        "eager": [
            ("pageable copy", "to", 1), ("bool", "is_nonzero", 5), ("copy to host", "to", 6),
        ]
    }  # fmt: skip
    cured = TRAINING.replace("batch.to", "batch.pin_memory().to").format(
        how=", non_blocking=True", check="pass", metric=""
    )
    assert waited(cured, sizes=(), name="cured.py") == {"eager": []}


def test_in_compiled_code_a_wait_stands_at_the_line_of_its_op(count, target):
    path = target("""
def make_inputs(n=None, device="cpu"):
    return (torch.randn(64),)


def f(x):
    y = x.to("cuda") + 1
    return y.cpu()
""")
    (outcome,) = count(path + ":f", "compile", device="paper").values()
    assert [s.line for s in outcome.syncs] == [8, 9]
    assert [(s.kind, s.compiled, s.function) for s in outcome.syncs] == [
        ("pageable copy", True, "f"), ("copy to host", True, "f"),
    ]  # fmt: skip


SAID = """
def f(x):
    y = x.sum()
    print(f"{y}")
    y = y + 1
    print(
        f"{y:.3f}", f"and {x[0]}",
    )
    said = str(y), repr(y), "%s" % y
    y = y + len(said)
    print(f"{y.tolist()}", f"{y.item()}")
    print(f"{y}"); print(f"{y}")
    return y + 1
"""


def test_what_is_said_of_a_tensor_waits_at_the_line_that_says_it_eager_and_compiled(waited):
    found = waited(SAID, "eager", "compile")
    assert found["eager"] == [
        ("item", "item", 2), *[("item", "item", 5)] * 2,
        *[("copy to host", "Tensor.__repr__", 7)] * 3,
        ("copy to host", "to", 9), ("item", "item", 9), *[("item", "item", 10)] * 2,
    ]  # fmt: skip
    # A call of several lines is, compiled, at its first: Dynamo makes ready for all of it at once.
    first = [(kind, op, {5: 4}.get(line, line)) for kind, op, line in found["eager"]]
    assert found["compile"] == first


def test_waits_while_inputs_are_made_and_in_the_module_do_not_count(waited):
    assert waited("""
SCALE = torch.ones(3, device="cuda").sum().item()


def make_inputs(n=None, device="cpu"):
    return (torch.randn(64).to(device) * torch.ones((), device=device).item(),)


def f(x):
    return x * SCALE
""", sizes=()) == {"eager": []}  # fmt: skip


def test_going_backward_for_the_user_waits_at_no_line(count, target):
    path = target("def f(x): return (x * 2).sum()")
    (outcome,) = count(path + ":f", device="paper", sizes=(8,), backward=True).values()
    assert outcome.syncs == ()


def test_what_cannot_be_counted_has_no_waits_told(count, target):
    (outcome,) = count(target("def f(x): return x.to_sparse()") + ":f", device="paper",
                       sizes=(8,)).values()  # fmt: skip
    assert isinstance(outcome, Unmeasured)


def test_pinned_memory_is_known_as_long_as_it_lives():
    import torch

    pinned = Pinned()
    tensor = torch.zeros(4)
    assert tensor not in pinned
    pinned.note(tensor)
    assert tensor[1:] in pinned
    assert torch.zeros(4) not in pinned


def test_calls_of_inductors_code_of_which_no_more_is_known_wait_as_their_ops_do():
    assert [s.kind for s in named("aten.nonzero.default").waits] == ["nonzero"]
    assert named("extern_kernels.mm").waits == ()
    assert not named("extern_kernels.mm").more_waits
    assert named("aten.geqrf.default").more_waits


def test_outside_of_all_the_users_code_a_wait_has_no_line():
    ours = {"waits": waits}
    code = "def call():\n    return waits.at('item', 'item')"
    exec(compile(code, capture.__file__, "exec"), ours)
    assert ours["call"]().line is None


def test_sequences_in_an_index_are_made_on_the_host_and_copied_each(waited):
    found = waited("""
import numpy as np
several = [[0, 1], [1, 2]]


def f(x):
    x = x.clone().view(8, 8)
    x[[0, 2, 5]], x[range(3)], x[(0, 1), ], x[np.array([0, 2])]
    x[:, [0, 3]], x[..., [0, 3]], x[1, [0, 3]]
    x[[0, 1], [1, 2]], x[several]
    x[[1, 2]] = 0.5
    x[[True] * 4 + [False] * 4] = x[:4]
    x[(0, 1)], x[0, 1], x[np.int64(3)], x[1:2, None], x[...]
    x[np.array(3)], x[list(range(8)) * 8]
    return x
""")
    lines = [line for _, _, line in found["eager"]]
    assert lines == [2] * 4 + [3] * 3 + [4] * 4 + [5] * 2 + [6] * 2 + [8] * 3
    assert {kind for kind, _, line in found["eager"] if line < 6} == {"pageable copy"}
    assert [kind for kind, _, line in found["eager"] if line == 6] == ["pageable copy", "mask"]


def test_where_a_mask_is_the_hosts_it_is_searched_there_and_what_is_found_is_not_waited_for(waited):
    found = waited("""
mask, places = torch.arange(64) < 5, torch.tensor([0, 2])
pinned = torch.tensor([0, 2]).pin_memory()


def f(x):
    x = x.clone()
    x[mask]
    x[places]
    x[mask] = 0.5
    x[places.cuda()]
    return x
""")
    assert found["eager"] == [
        ("pageable copy", "index", 3), ("pageable copy", "index_put_", 4),
        ("pageable copy", "to", 5),
    ]  # fmt: skip


def test_numbers_of_the_hosts_are_copied_where_a_choice_is_made_of_them(waited):
    found = waited("""
one, two = torch.tensor(0.0), torch.tensor(1.0)


def f(x):
    torch.where(x > 0, x, one)
    torch.where(x > 0, one, two)
    return torch.where(x > 0, x, 0.0), x + one, x.clamp(0.0), torch.maximum(x, one)
""")
    assert found["eager"] == [("pageable copy", "where", line) for line in (1, 2, 2)]


def test_torchs_own_code_that_acts_for_the_user_sees_a_gpu(waited):
    found = waited("""
scaler = torch.amp.GradScaler("cuda")


def f(x):
    torch.testing.assert_close(x, x.clone())
    scaler.scale(x)
    scaler.update(torch.ones((), device=x.device))
    return x
""")
    assert [w for w in found["eager"] if w[2] == 1] == [("bool", "is_nonzero", 1)]


def test_a_copy_to_the_host_that_nobody_waits_for_is_known_not_to_be(count, target):
    path = target("""
        def f(x):
            return x.to("cpu", non_blocking=True)
    """)
    outcome = count(f"{path}:f", device="paper", sizes=(64,))["eager"]
    assert (outcome.syncs, outcome.count("copy")) == ((), 1)
    assert "syncs-at-least" not in codes(outcome)


def test_numbers_of_the_hosts_own_are_no_values_that_the_path_depends_on(count, target):
    path = target("""
        import time

        def f(x):
            began = time.time()
            y = x + 1
            print("took", time.time() - began, end="")
            return y.relu()
    """)
    outcome = count(f"{path}:f", "compile", device="paper", sizes=(64,))["compile"]
    assert "values" not in codes(outcome)
    assert (outcome.syncs, outcome.count("kernel")) == ((), 2)


def test_a_sign_of_the_hosts_is_a_number_of_the_kernels(count, target):
    path = target("""
        def f(x):
            return x.copysign(torch.tensor(-1.0)), x.copysign_(torch.tensor(-1.0))
    """)
    outcome = count(f"{path}:f", device="paper", sizes=(64,))["eager"]
    assert (outcome.syncs, outcome.count("kernel"), outcome.count("copy")) == ((), 2, 0)
    assert not {"syncs-at-least", "values"} & {*codes(outcome)}


@pytest.mark.parametrize("call", ["cuda(non_blocking=True)", "cuda(0, True)", "cuda(None, True)"])
def test_what_compiled_code_sends_and_need_not_wait_for_it_does_not(count, target, call):
    path = target(f"""
        def make_inputs(n=None, device="cpu"):
            return (torch.randn(64),)

        def f(x):
            return x.{call}.relu() + 1
    """)
    outcomes = count(f"{path}:f", "eager", "compile", device="paper", sizes=())
    assert [(o.syncs, o.count("copy")) for o in outcomes.values()] == [((), 1)] * 2
