"""What an op of several kernels hands on from one to the next, and where that is not known."""

import pytest
import torch
import torch.nn.functional as F

from kernelcount.paper import rules, stages
from kernelcount.paper.gpu import of_card

pytestmark = pytest.mark.filterwarnings("ignore")

WHOLE = 64 * 64 * 4


def run(function, *, backward=False, shape=(64, 64)):
    """What a call on one array of this shape launches."""
    gpu = of_card(None)
    with gpu.prepare():
        x = torch.empty(shape, device="cuda", requires_grad=backward)

        def call():
            result = function(x)
            if backward:
                result.sum().backward()
            return result

        gpu.run(call, [x])
        return {c.name.removeprefix("aten::"): c for c in gpu.noted}


HANDED_ON = {
    "losses that are summed": ("mse_loss", lambda x: F.mse_loss(x, x + 1), 3, 1),
    "losses by Huber": ("huber_loss", lambda x: F.huber_loss(x, x + 1), 3, 1),
    "losses that are not": (
        "smooth_l1_loss", lambda x: F.smooth_l1_loss(x, x + 1, reduction="none"), 2, 1
    ),
    "losses by their absolute": (
        "smooth_l1_loss", lambda x: torch._C._nn.smooth_l1_loss(x, x + 1, 1, 0.0), 4, 2
    ),
    "losses that are weighted": (
        "binary_cross_entropy", lambda x: F.binary_cross_entropy(x, x + 1, x + 2), 5, 2
    ),
    "a sum of truths": ("sum", lambda x: (x > 0).sum(), 0.25 + 2, 2),
    "a power of a number": ("pow", lambda x: 2.0**x, 1, 1),
    "a number by a power of 2": ("ldexp", lambda x: torch.ldexp(x, x + 1), 3, 2),
    "rows that are made contiguous": ("_softmax", lambda x: x.t().softmax(1), 2, 2),
    "a sum of another dtype": ("cumsum", lambda x: x.cumsum(1, dtype=torch.float64), 3, 4),
    "rows whose moments come first": (
        "native_layer_norm", lambda x: F.layer_norm(x[:, :63].contiguous(), (63,)), 2, 1
    ),
    "rolled twice": ("roll", lambda x: x.roll((1, 2), (0, 1)), 2, 2),
    "what is infinite": ("isinf", lambda x: x.isinf(), 2, 1.25),
    "what is padded": ("constant_pad_nd", lambda x: F.pad(x, (64, 0)), 1, 3),
    "a copy that is filled": ("masked_fill", lambda x: x.masked_fill(x > 0, 1.0), 2.25, 2),
}  # fmt: skip


@pytest.mark.parametrize("name", HANDED_ON)
def test_what_one_kernel_of_an_op_writes_and_the_next_reads_is_among_its_bytes(name):
    op, function, read, written = HANDED_ON[name]
    call = run(function)[op]
    assert (call.read / WHOLE, call.written / WHOLE) == pytest.approx((read, written), rel=0.05)
    assert not call.moves_more


ZEROED = {
    "slice_backward": (lambda x: x[:48] * 2, 0.75, 1.75),
    "select_backward": (lambda x: x[3] * 2, 1 / 64, 1 + 1 / 64),
    "diagonal_backward": (lambda x: x.diagonal() * 2, 1 / 64, 1 + 1 / 64),
    "unfold_backward": (lambda x: x.unfold(0, 8, 8) * 2, 2, 2),
}


@pytest.mark.parametrize("name", ZEROED)
def test_a_gradient_that_is_zeroed_and_then_put_in_its_place_is_written_twice(name):
    function, read, written = ZEROED[name]
    call = run(function, backward=True)[name]
    assert (call.read / WHOLE, call.written / WHOLE) == pytest.approx((read, written), rel=0.01)
    assert not call.moves_more


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("sort", lambda x: x.sort()),
        ("binary_cross_entropy_with_logits",
         lambda x: F.binary_cross_entropy_with_logits(x, x + 1)),
        ("_euclidean_dist", lambda x: torch.cdist(x, x + 1)),
        ("convolution", lambda x: F.conv2d(x.view(1, 1, 64, 64), x[:3, :3].clone()[None, None],
                                           x[0, :1])),
    ],
)  # fmt: skip
def test_where_nobody_knows_what_is_handed_on_the_bytes_are_a_lower_bound(name, function):
    assert run(function)[name].moves_more


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("mm", lambda x: x @ x),
        ("convolution", lambda x: F.conv2d(x.view(1, 1, 64, 64), x[:3, :3].clone()[None, None])),
        ("relu", lambda x: x.relu()),
        ("cat", lambda x: torch.cat([x] * 200)),
    ],
)
def test_products_and_what_is_done_in_parts_move_what_they_are_given_and_give(name, function):
    assert not run(function)[name].moves_more


def test_an_operand_beyond_32_bits_is_worked_on_in_parts_and_moves_the_same():
    call = run(lambda x: x.relu(), shape=(1 << 30,))["relu"]
    assert not call.cost.exact
    assert not call.moves_more
    assert (call.read, call.written) == (4 << 30, 4 << 30)


def test_a_gradient_that_goes_another_way_on_a_gpu_is_in_no_bytes_and_says_so():
    calls = run(lambda x: x.cumprod(1), backward=True)
    assert calls["CumprodBackward0"].moves_more


def test_every_op_that_rules_say_is_several_kernels_has_its_bytes_or_is_a_lower_bound():
    several = {n for n in rules._SPECIAL if n not in rules._ONE} - {"_local_scalar_dense"}
    told = {*stages._STAGES, *stages._ONE_PASS, *rules.COPIES}
    unknown = {
        "_logcumsumexp", "logcumsumexp", "mvlgamma", "mvlgamma_", "pixel_shuffle",
        "pixel_unshuffle", "repeat_interleave",
    }  # fmt: skip
    assert several - told == unknown
    op = rules.Op("mvlgamma", "aten", (), {}, [], [])
    assert stages.handed_on(op, rules.cost(op)) is None or rules.cost(op) == rules.NOTHING
