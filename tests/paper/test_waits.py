"""Waits on paper: at the lines at which a GPU makes the CPU wait, and at no others."""

from pathlib import Path

import pytest
from counting import CASES

from kernelcount import capture
from kernelcount.model import Unmeasured
from kernelcount.paper import waits
from kernelcount.paper.waits import Pinned, in_graph


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
    assert [kind for kind, _, line in found["eager"] if line == 3] == ["inside an op"] * 2
    assert {line for _, _, line in found["eager"]} == {3}


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


def test_calls_of_inductors_code_wait_as_their_ops_do():
    assert in_graph("aten.nonzero.default", None) == "nonzero"
    assert in_graph("copy_", "copy to host") == "copy to host"
    assert in_graph("extern_kernels.mm", None) is None


def test_outside_of_all_the_users_code_a_wait_has_no_line():
    ours = {"waits": waits}
    code = "def call():\n    return waits.at('item', 'item')"
    exec(compile(code, capture.__file__, "exec"), ours)
    assert ours["call"]().line is None
