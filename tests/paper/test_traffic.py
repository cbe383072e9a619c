"""What one op moves through GPU memory."""

import pytest
import torch
import torch.nn.functional as F

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
