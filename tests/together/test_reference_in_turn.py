"""What is true in float64 does not depend on what the variants do to what they share."""

import pytest

SPOILS = [
    "x.mul_(2)",
    "x.mul_(1000)",
    "x.add_(100)",
    "x.relu_()",
    "x.view(2, -1)[0].zero_()",
    "x[3:] = 7",
    "x.detach().mul_(2)",
    "x.data.mul_(2)",
    "torch.mul(x, 2, out=x)",
    "torch._foreach_mul_([x], 2)",
    "x.copy_(x.flip(0) + 1)",
]
KEEP = "import torch\ndef {}(x):\n    return x.sum()\n"
SPOIL = "import torch\ndef {}(x):\n    s = x.sum()\n    {}\n    return s\n"


@pytest.fixture
def all_compared(count, target):
    """How the results of each of `names` compare with those of `f`, on the CPU."""

    def found(text, *names, **options):
        path = target(text)
        options = {"sizes": (8,), "seconds": 1e-4, "reference": True, **options}
        outcomes = count(f"{path}:f", f"{path}:f", *(f"{path}:{n}" for n in names), **options)
        return [outcomes[f"{path}:{name}"].numerics for name in names]

    return found


@pytest.fixture
def compared(all_compared):
    """How the results of `g` compare with those of `f`, on the CPU."""
    return lambda text, **options: all_compared(text, "g", **options)[0]


def is_spoilt(found):
    """Whether the argument alone differs, and the truth is what the first does."""
    assert found.verdict == "different"
    assert "beyond the tolerance: argument 1 afterwards" in found.notes
    assert found.base_error < 1e-6
    return found.error > 0.1


@pytest.mark.parametrize("some", [SPOILS[:4], SPOILS[4:8], SPOILS[8:]])
def test_an_argument_that_one_variant_spoils_is_whole_for_the_others_and_their_references(
    all_compared, some
):
    names = [f"g{i}" for i in range(len(some))]
    spoil = "".join(map(SPOIL.format, names, some))
    assert all(map(is_spoilt, all_compared(KEEP.format("f") + spoil, *names)))


@pytest.mark.parametrize("spoil", SPOILS[3:6])
def test_so_it_is_where_the_first_one_spoils_it(compared, spoil):
    assert is_spoilt(compared(KEEP.format("g") + SPOIL.format("f", spoil)))


@pytest.mark.parametrize("dtype", ["bf16", "f64"])
def test_so_it_is_in_every_dtype(compared, dtype):
    text = KEEP.format("f") + SPOIL.format("g", "x.mul_(2)")
    found = compared(text, inputs=(f"{dtype}[N]",))
    assert (found.verdict, found.base_error < 0.01) == ("different", True)


def test_an_argument_that_both_spoil_differently_differs(compared):
    found = compared(SPOIL.format("f", "x.mul_(2)") + SPOIL.format("g", "x.mul_(3)"))
    assert found.verdict == "different"
    assert found.base_error < 1e-6
    assert found.error == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("spoil", SPOILS[:2])
def test_an_argument_that_both_spoil_alike_is_equal(compared, spoil):
    assert compared(SPOIL.format("f", spoil) + SPOIL.format("g", spoil)).verdict == "equal"


def test_a_variant_is_timed_with_arguments_that_no_other_has_spoilt(compared):
    found = compared(
        "import torch\ndef f(x):\n    assert (x != 0).all()\n    return x.sum()\n"
        + SPOIL.format("g", "x.zero_()")
    )
    assert found.verdict == "different"


def test_the_gradients_that_a_variant_leaves_are_not_the_others(compared):
    text = """
import torch
w = torch.ones(8, requires_grad=True)
def f(x):
    assert w.grad is None
    return x * w.detach()
def g(x):
    (x * w).sum().backward()
    found = x * w.detach()
    w.grad = None
    return found
"""
    assert compared(text).verdict == "equal"


# ── state that is reached ────────────────────────────────────────────────────────────────────────

STEP = """
import torch
torch.manual_seed(0)
lin = torch.nn.Linear(8, 8)
opt = torch.optim.{optimizer}(lin.parameters(), lr=.1{more})
def f(x):
    opt.zero_grad(); l = lin(x).square().mean(); l.backward(); opt.step(); return l.detach()
def g(x):
    opt.zero_grad(); l = lin(x).square().mean(){wrong}; l.backward(); opt.step(); return l.detach()
"""


@pytest.mark.parametrize(
    ("optimizer", "more"),
    [("SGD", ""), ("SGD", ", momentum=.9"), ("Adam", ""), ("AdamW", ", foreach=False")],
)
def test_a_training_step_is_equal_to_itself(compared, optimizer, more):
    text = STEP.format(optimizer=optimizer, more=more, wrong="")
    found = compared(text, inputs=("f32[4,8]",))
    assert found.verdict == "equal"
    assert found.error < 1e-6


def test_another_training_step_is_not(compared):
    text = STEP.format(optimizer="SGD", more="", wrong=" * 1.01")
    assert compared(text, inputs=("f32[4,8]",)).verdict == "different"


@pytest.mark.parametrize("change", ["w.mul_(1.5)", "w.data.add_(x)", "torch.add(w, 1, out=w)"])
def test_a_tensor_in_a_global_that_every_call_changes_is_no_state_between_the_variants(
    compared, change
):
    text = "def {}(x):\n    y = x * w\n    {}\n    return y\n"
    found = compared(
        "import torch\nw = torch.ones(8)\n" + text.format("f", change) + text.format("g", change)
    )
    assert (found.verdict, found.error < 1e-6) == ("equal", True)


def test_a_tensor_that_every_call_puts_into_a_global_is_as_it_was_for_the_others(compared):
    text = """
import torch
w = torch.ones(8)
def f(x):
    global w
    y, w = x * w, w * 2
    return y
def g(x): return w * x
"""
    found = compared(text)
    assert (found.verdict, found.error < 1e-6) == ("equal", True)


def test_a_training_step_of_a_module_that_owns_its_optimizer_is_equal_to_itself(compared):
    text = """
import torch
class Step(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.lin = torch.nn.Linear(8, 8)
        self.opt = torch.optim.AdamW(self.lin.parameters(), lr=.1)
    def forward(self, x):
        self.opt.zero_grad()
        loss = self.lin(x).square().mean()
        loss.backward()
        self.opt.step()
        return loss.detach()
f, g = Step(), Step()
"""
    found = compared(text, inputs=("f32[4,8]",))
    assert (found.verdict, found.error < 1e-6) == ("equal", True)


def test_state_of_pythons_own_is_told_and_nothing_compared(compared):
    text = """
calls = 0
def f(x):
    global calls
    calls += 1
    return x + calls
def g(x): return 1.0 * f(x)
"""
    assert compared(text).verdict == "unknown"


# ── arguments that share memory ──────────────────────────────────────────────────────────────────

MAKERS = {
    "a part": "y = torch.randn(8, 8); return y, y[:4]",
    "the same": "y = torch.randn(8, 8); return y, y",
    "transposed": "y = torch.randn(8, 8); return y, y.t()",
    "NumPy's": "y = torch.randn(8, 8); return y, torch.from_numpy(y.numpy()[2:])",
    "in a list": "y = torch.randn(8, 8); return y, [y[:4]]",
    "in a dataclass": "y = torch.randn(8, 8); return y, Pair(y[:4], y)",
    "in an object": "y = torch.randn(8, 8); return y, Object(y[:4])",
    "a global": "return W, 3.0",
    "a part of a global": "return W[:4], 3.0",
}


@pytest.mark.parametrize("maker", MAKERS)
def test_what_is_written_into_one_argument_is_read_in_another_in_float64_too(compared, maker):
    """The reference of the first variant is what it does itself."""
    text = f"""
import dataclasses, torch
W = torch.randn(8, 8)
@dataclasses.dataclass
class Pair:
    one: torch.Tensor
    other: torch.Tensor
class Object:
    def __init__(self, x): self.one = x
def get_inputs():
    {MAKERS[maker]}
def read(b):
    if isinstance(b, float): return W
    if isinstance(b, list): return b[0]
    return b.one if isinstance(b, Pair | Object) else b
def f(a, b): a.add_(1); return read(b).sum()
def g(a, b): s = read(b).sum(); a.add_(1); return s
"""
    found = compared(text, sizes=(None,))
    assert found.verdict == "different"
    assert found.base_error < 1e-6 < found.error


# ── casts of the function's own ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "cast", ["bfloat16()", "to(torch.bfloat16)", "to(torch.zeros(1, dtype=torch.bfloat16))"]
)
def test_a_variant_that_rounds_less_than_the_casts_of_the_first_is_right(all_compared, cast):
    text = f"""
import torch
def f(x): h = x.{cast}; return ((h * 1.1 + 0.3) * 1.7).float()
def g(x): return (x * 1.1 + 0.3) * 1.7
def wrong(x): return x * 1.1 + 0.3
"""
    right, wrong = all_compared(text, "g", "wrong", sizes=(4096,))
    assert (right.verdict, wrong.verdict) == ("close", "different")
    assert all(1e-3 < found.base_error < 0.016 for found in (right, wrong))
    assert right.error < 1e-6
