"""What one op moves through GPU memory."""

import pytest
import torch
import torch.nn.functional as F

from kernelcount import runners
from kernelcount.model import Job
from kernelcount.paper.footprint import distinct_bytes
from kernelcount.paper.gpu import of_card
from kernelcount.paper.rules import Op
from kernelcount.paper.traffic import traffic


def op(name, args, read, written, **kwargs):
    return Op(name, "aten", args, kwargs, read, written)


@pytest.fixture
def x():
    import torch

    return torch.empty(8, 8, device="meta")


def like(x):
    import torch

    return torch.empty_like(x)


def test_bytes_count_each_element_once(x):
    assert distinct_bytes(x[:1].expand(8, 8)) == 8 * 4
    assert traffic(op("add", (x, x), [x, like(x)], [like(x)])) == (512, 256)
    assert traffic(op("zeros_like", (x,), [x], [like(x)])) == (0, 256)
    assert traffic(op("copy_", (x, x), [x, x], [x])) == (256, 256)


def test_a_gather_reads_no_more_of_its_table_than_it_gives(x):
    indices = x[0, :2].long()
    result = x[:2].clone()
    assert traffic(op("index_select", (x, 0, indices), [x, indices], [result])) == (64 + 16, 64)


@pytest.fixture
def table():
    import torch

    return torch.empty(1000, 16, device="meta")


def whole_numbers(*shape):
    import torch

    return torch.empty(shape, device="meta", dtype=torch.int64)


@pytest.mark.parametrize("name", ["embedding", "index"])
def test_of_a_table_the_rows_asked_for_are_read(name, table):
    import torch

    indices = whole_numbers(8)
    rows = torch.empty(8, 16, device="meta")
    args = (table, [indices] if name == "index" else indices)
    assert traffic(op(name, args, [table, indices], [rows])) == (8 * 16 * 4 + 8 * 8, 8 * 16 * 4)


def test_of_an_element_for_each_index_the_elements_are_read(table):
    import torch

    indices = whole_numbers(1000, 1)
    found = torch.empty(1000, 1, device="meta")
    args = (table, 1, indices)
    assert traffic(op("gather", args, [table, indices], [found])) == (4000 + 8000, 4000)


def test_a_bag_reads_a_row_for_each_index_although_it_gives_their_sum(table):
    import torch

    indices, offsets = whole_numbers(8), whole_numbers(2)
    bags = torch.empty(2, 16, device="meta")
    given = [table, indices, offsets]
    read, written = traffic(op("_embedding_bag", tuple(given), given, [bags]))
    assert (read, written) == (8 * 16 * 4 + 8 * 8 + 2 * 8, 2 * 16 * 4)


def test_a_loss_reads_one_probability_for_each_target(table):
    import torch

    targets = whole_numbers(1000)
    loss, weight = torch.empty((), device="meta"), torch.empty((), device="meta")
    args = (table, targets, None, 1, -100)
    assert traffic(op("nll_loss_forward", args, [table, targets], [loss, weight])) == (
        4000 + 8000,
        8,
    )
    back = [loss, table, targets, weight]
    assert traffic(op("nll_loss_backward", tuple(back), back, [like(table)])) == (8008, 64_000)


def test_what_is_put_in_place_is_written_where_the_indices_lead_and_nowhere_else(table):
    import torch

    indices, rows = whole_numbers(8), torch.empty(8, 16, device="meta")
    part = 8 * 16 * 4
    given = [table, indices, rows]
    put = (table, [indices], rows)
    assert traffic(op("index_put_", put, given, [table])) == (64 + part, part)
    assert traffic(op("index_put_", (*put, True), given, [table])) == (64 + 2 * part, part)
    copy = (table, 0, indices, rows)
    assert traffic(op("index_copy_", copy, given, [table])) == (64 + part, part)
    assert traffic(op("index_add_", copy, given, [table])) == (64 + 2 * part, part)


def test_a_number_put_in_place_is_written_to_as_many_places_as_its_indices_broadcast_to(table):
    rows, columns = whole_numbers(8, 1), whole_numbers(4)
    number = table[0, 0]
    given = [table, rows, columns, number]
    found = traffic(op("index_put_", (table, [rows, columns], number), given, [table]))
    assert found == (64 + 32 + 4, 8 * 4 * 4)


def test_a_scatter_takes_no_more_of_its_source_than_it_has_places(table):
    import torch

    indices, source = whole_numbers(1000, 2), torch.empty(1000, 16, device="meta")
    given = [table, indices, source]
    args = (table, 1, indices, source)
    assert traffic(op("scatter_", args, given, [table])) == (16_000 + 8000, 8000)
    assert traffic(op("scatter_add_", args, given, [table])) == (16_000 + 16_000, 8000)


def test_what_is_not_put_in_place_is_put_into_a_copy(table):
    import torch

    indices, rows = whole_numbers(8), torch.empty(8, 16, device="meta")
    args = (table, [indices], rows)
    found = traffic(op("index_put", args, [table, indices, rows], [like(table)]))
    assert found == (64_000 + 64 + 512, 64_000 + 512)


def test_a_mask_may_lead_to_every_element(table):
    import torch

    mask = torch.empty(1000, 16, device="meta", dtype=torch.bool)
    number = table[0, 0]
    args = (table, [mask], number)
    assert traffic(op("index_put_", args, [table, mask, number], [table])) == (16_004, 64_000)


MEASURED = {
    "the same twice": (lambda x: x * x, 1, 1),
    "the same in place": (lambda x: x.add_(x), 1, 1),
    "the same three times": (lambda x: torch.addcmul(x, x, x), 1, 1),
    "the same as what it is written to": (lambda x: torch.mul(x, x, out=x), 1, 1),
    "another that is written to": (lambda x: torch.mul(x, 2, out=torch.empty_like(x)), 1, 1),
    "a product with itself": (lambda x: x @ x, 1, 1),
    "a product with its transpose": (lambda x: x @ x.t(), 1, 1),
    "attention to itself": (
        lambda x: F.scaled_dot_product_attention(*[x.view(1, 1, 64, 64)] * 3), 1, 1
    ),
    "neighbours": (lambda x: x.view(-1)[1:] - x.view(-1)[:-1], 1, 4095 / 4096),
    "halves": (lambda x: F.silu(x[:, :32]) * x[:, 32:], 1.5, 1),
    "windows": (lambda x: x.view(-1).unfold(0, 4, 1).sum(-1), 1, 4093 / 4096),
    "overlapping rows": (lambda x: x.as_strided((10, 900), (10, 1)) * 2, 990 / 4096, 9000 / 4096),
    "a sum times nothing": (lambda x: torch.addmm(x, x + 1, x + 2, beta=0), 4, 3),
    "a sum in place times nothing": (lambda x: x.addmm_(x + 1, x + 2, beta=0), 4, 3),
    "a sum": (lambda x: torch.addmm(x, x + 1, x + 2), 5, 3),
    "rows by their root, which is kept": (
        lambda x: F.rms_norm(x.view(2048, 2), (2,)), 1, 1 + 0.5
    ),
    "rows of halves by their root": (
        lambda x: F.rms_norm(x.view(torch.float16).view(1024, 8), (8,)), 1, 1 + 0.25
    ),
    "drawn anew": (lambda x: x.exponential_(), 0, 1),
    "many copied": (lambda x: torch._foreach_copy_([x], [x + 1]), 2, 2),
    "many emptied": (lambda x: torch._foreach_zero_([x]), 0, 1),
    "copied to the host": (lambda x: torch.empty(64, 64).copy_(x), 1, 0),
    "put into what is given": (
        lambda x: torch.scatter(x, 1, x.long(), x + 1, out=torch.empty_like(x)), 6, 5
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MEASURED)
def test_a_place_in_memory_is_read_once_by_an_op_and_only_where_it_counts(name):
    function, read, written = MEASURED[name]
    gpu = of_card(None)
    with gpu.prepare():
        x = torch.empty(64, 64, device="cuda")
        gpu.run(lambda: function(x), [x])
        moved = [(call.read, call.written) for call in gpu.noted]
    whole = 64 * 64 * 4
    found = sum(r for r, _ in moved) / whole, sum(w for _, w in moved) / whole
    assert found == pytest.approx((read, written), rel=0.02)


@pytest.mark.filterwarnings("ignore")
def test_the_gradient_of_rms_norm_reads_the_root_that_is_kept_of_each_row():
    gpu = of_card(None)
    with gpu.prepare():
        x = torch.empty(64, 4, device="cuda", requires_grad=True)
        seed = torch.empty(64, 4, device="cuda")
        gpu.run(lambda: F.rms_norm(x, (4,)).backward(seed), [x])
        backward = next(c for c in gpu.noted if c.name == "aten::_fused_rms_norm_backward")
    assert (backward.read, backward.written) == (2 * 1024 + 256, 1024)
    made = torch.ops.aten._fused_rms_norm.default(torch.ones(64, 4), [4], None, None)
    assert [t.numel() for t in made] == [256, 64]


OF_SHAPES = {
    "avg_pool2d_backward": lambda x: F.avg_pool2d(x, 2),
    "max_pool2d_with_indices_backward": lambda x: F.max_pool2d(x, 2),
    "_adaptive_avg_pool2d_backward": lambda x: F.adaptive_avg_pool2d(x, 7),
    "adaptive_max_pool2d_backward": lambda x: F.adaptive_max_pool2d(x, 8),
    "fractional_max_pool2d_backward": lambda x: F.fractional_max_pool2d(x, 2, 8),
    "reflection_pad2d_backward": lambda x: F.pad(x, (1, 1, 1, 1), "reflect"),
    "replication_pad2d_backward": lambda x: F.pad(x, (1, 1, 1, 1), "replicate"),
    "avg_pool3d_backward": lambda x: F.avg_pool3d(x, 2),
    "max_pool3d_with_indices_backward": lambda x: F.max_pool3d(x, 2),
    "_adaptive_avg_pool3d_backward": lambda x: F.adaptive_avg_pool3d(x, 3),
    "adaptive_max_pool3d_backward": lambda x: F.adaptive_max_pool3d(x, 3),
    "replication_pad3d_backward": lambda x: F.pad(x, (1,) * 6, "replicate"),
    "reflection_pad3d_backward": lambda x: F.pad(x, (1,) * 6, "reflect"),
}


def backward_of(function, *shape, dtype=torch.float32):
    """The calls of a function of one array and of its gradient, by name."""
    gpu = of_card(None)
    with gpu.prepare():
        x = torch.empty(shape, device="cuda", requires_grad=True, dtype=dtype)
        gpu.run(lambda: function(x).sum().backward(), [x])
        return {call.name.removeprefix("aten::"): call for call in gpu.noted}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OF_SHAPES)
def test_a_gradient_that_asks_how_large_its_input_was_does_not_read_it(name):
    shape = (2, 8, 16, 16, 16) if "3d" in name else (8, 8, 64, 64)
    call = backward_of(lambda x: OF_SHAPES[name](x) * 2, *shape)[name]
    given = torch.empty(shape, device="meta", requires_grad=True)
    result = OF_SHAPES[name](given)
    kept = result.numel() * (12 if "max" in name else 4)  # with indices, of eight bytes each
    assert call.read == kept
    assert call.written == given.numel() * 4


@pytest.mark.filterwarnings("ignore")
def test_a_gradient_does_not_read_what_only_says_whether_there_is_one():
    w, b = (torch.empty(64, device="meta", requires_grad=True) for _ in range(2))
    calls = backward_of(lambda x: F.layer_norm(x, (64,), w, b), 100, 64)
    rows = 100 * 64 * 4
    assert calls["native_layer_norm_backward"].read == 4 + rows + 2 * 400 + 256
    weight = torch.empty(8, 3, 3, 3, device="meta", requires_grad=True)
    first = backward_of(lambda x: F.conv2d(x.detach(), weight), 2, 3, 10, 10)
    assert first["convolution_backward"].read == 4 * (1 + 2 * 3 * 100)


@pytest.mark.filterwarnings("ignore")
def test_the_log_of_a_sigmoid_has_no_buffer_on_a_gpu():
    calls = backward_of(F.logsigmoid, 64, 64)
    forward, backward = calls["log_sigmoid_forward"], calls["log_sigmoid_backward"]
    assert (forward.read, forward.written) == (16_384, 16_384)
    assert (backward.read, backward.written) == (16_384 + 4, 16_384)
    assert not forward.moves_more


@pytest.mark.filterwarnings("ignore")
def test_attention_gives_the_sums_of_its_rows_where_a_gradient_needs_them():
    def attended(x):
        return F.scaled_dot_product_attention(x, x, x)

    name = "_scaled_dot_product_cudnn_attention"
    kept = backward_of(attended, 2, 8, 128, 64, dtype=torch.bfloat16)[name]
    whole, sums = 2 * 8 * 128 * 64 * 2, 2 * 8 * 128 * 4
    assert kept.written == pytest.approx(whole + sums, abs=16)
    alone = backward_of(
        lambda x: attended(x.detach()) * x, 2, 8, 128, 64, dtype=torch.bfloat16
    )[name]  # fmt: skip
    assert alone.written == pytest.approx(whole, abs=16)


OPTIMIZERS = {
    "SGD": ({}, 2, 1),
    "SGD with momentum": ({"momentum": 0.9}, 3, 2),
    "AdamW": ({}, 4, 3),
    "AdamW with amsgrad": ({"amsgrad": True}, 5, 4),
    "Adagrad": ({}, 3, 2),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_fused_optimizer_reads_gradients_and_does_not_write_them(name):
    given, read, written = OPTIMIZERS[name]
    gpu = of_card(None)
    with gpu.prepare():
        weight = torch.nn.Parameter(torch.empty(512, 512, device="cuda"))
        weight.grad = torch.empty(512, 512, device="cuda")
        make = getattr(torch.optim, name.partition(" ")[0])
        optimizer = make([weight], lr=0.1, fused=True, **given)
        optimizer.step()
        gpu.run(optimizer.step, [weight])
        (call,) = [c for c in gpu.noted if "_fused_" in c.name]
    whole = 512 * 512 * 4
    assert (call.read, call.written) == pytest.approx((read * whole, written * whole), abs=8)
    assert not call.moves_more
    assert not call.more_waits
    assert gpu.values.asked is None


def test_a_fused_optimizer_writes_gradients_that_it_takes_back_to_their_scale():
    from kernelcount.paper.mode import op_of

    tensors = [torch.empty(8, device="meta") for _ in range(2)]
    given = ([tensors[0]], [tensors[1]], [])
    options = {"weight_decay": 0.0, "momentum": 0.0, "lr": 0.1, "dampening": 0.0,
               "nesterov": False, "maximize": False, "is_first_step": True}  # fmt: skip
    op = torch.ops.aten._fused_sgd_.default
    assert op_of(op, given, options, []).written == tensors[:1]
    scaled = {**options, "grad_scale": torch.empty(1, device="meta")}
    assert op_of(op, given, scaled, []).written == tensors


def test_what_is_put_at_places_of_the_whole_array_is_written_there_and_nowhere_else(table):
    places, values = whole_numbers(10), torch.empty(10, device="meta")
    given = [table, places, values]
    assert traffic(op("put_", tuple(given), given, [table])) == (80 + 40, 40)
    assert traffic(op("put_", (*given, True), given, [table])) == (80 + 80, 40)
    rows, source = whole_numbers(8), torch.empty(8, 16, device="meta")
    reduced = (table, 0, rows, source, "amax")
    given = [table, rows, source]
    assert traffic(op("index_reduce_", reduced, given, [table])) == (64 + 2 * 512, 512)


IN_PLACE = """
import torch
def make_inputs(n, device):
    x, index = torch.randn(1000, 1000, device=device), torch.zeros(1000, 10, device=device).long()
    return x, index, torch.randn(1000, 10, device=device)
def largest(x, index, values):
    return x.scatter_reduce_(1, index, values, "amax")
"""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("variant", ["eager", "compile"])
def test_a_library_call_in_place_writes_no_more_in_compiled_code_than_in_eager(target, variant):
    job = Job(f"{target(IN_PLACE)}:largest", device="paper", variants=(variant,))
    (outcome,) = runners.in_process(job, lambda _: None).outcomes.values()
    (row,) = [r for r in outcome.rows() if "scatter_reduce_." in f"{r.name}." and r.label]
    assert (row.read, row.written) == (160_000, 40_000)
    assert row.at_least
