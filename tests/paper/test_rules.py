"""Rules: what one op launches."""

import pytest

from kernelcount.paper.rules import NOTHING, ONE, Cost, Op, cost


def op(name, args, read, written, *, pointwise=False, **kwargs):
    return Op(name, kwargs.pop("namespace", "aten"), args, kwargs, read, written, pointwise)


@pytest.fixture
def x():
    import torch

    return torch.empty(8, 8, device="meta")


def like(x):
    import torch

    return torch.empty_like(x)


def test_a_pointwise_op_is_one_kernel(x):
    assert cost(op("add", (x, x), [x, x], [like(x)], pointwise=True)) == Cost(1)


def test_an_op_that_no_rule_knows_is_a_lower_bound(x):
    assert cost(op("sort", (x,), [x], [like(x)])) == Cost(1, exact=False)


def test_somebodys_own_op_may_launch_nothing(x):
    assert cost(op("op", (x,), [x], [like(x)], namespace="mine")) == Cost(0, exact=False)


@pytest.mark.parametrize("name", ["view", "expand", "empty_like", "_unsafe_view", "t"])
def test_views_and_allocations_are_nothing(name, x):
    assert cost(op(name, (x,), [x], [x])) == NOTHING


def test_what_only_gives_back_its_argument_is_nothing(x):
    assert cost(op("contiguous_or_so", (x,), [x], [x])) == NOTHING


def test_an_empty_result_is_nothing(x):
    assert cost(op("add", (x[:0],), [x[:0]], [x[:0].clone()], pointwise=True)) == NOTHING


def test_a_dense_clone_is_a_copy(x):
    assert cost(op("clone", (x,), [x], [like(x)])) == Cost(0, 1)
    assert cost(op("clone", (x.t(),), [x.t()], [like(x.t())])) == Cost(0, 1)


def test_a_clone_into_another_layout_or_dtype_is_a_kernel(x):
    assert cost(op("clone", (x.t(),), [x.t()], [like(x)])) == Cost(1)
    assert cost(op("_to_copy", (x,), [x], [x.half()])) == Cost(1)


def test_a_scalar_read_is_a_copy(x):
    assert cost(op("_local_scalar_dense", (x,), [x], [])) == Cost(0, 1)


def test_a_mask_searches_first(x):
    assert cost(op("index", (x, [x.bool()]), [x, x.bool()], [x[:1].clone()])).kernels == 2


def test_an_embedding_copies_indices_that_are_not_contiguous(x):
    indices = x.long()
    assert cost(op("embedding", (x, indices), [x, indices], [like(x)])) == Cost(1)
    assert cost(op("embedding", (x, indices.t()), [x, indices.t()], [like(x)])) == Cost(2)


def test_cumsum_casts_first_where_the_dtype_changes(x):
    assert cost(op("cumsum", (x.bool(), -1), [x.bool()], [x.long()])) == Cost(2)
    assert cost(op("cumsum", (x, -1), [x], [like(x)])) == Cost(1)
    row = x[:1]
    assert cost(op("cumsum", (row, -1), [row], [like(row)])) == Cost(1, exact=False)


# As an H200 launched them, torch 2.11: see tests/gpu/op_database.py, which measures.


def test_a_softmaxs_gradient_multiplies_first(x):
    assert cost(op("_softmax_backward_data", (x, x, -1, x.dtype), [x, x], [like(x)])) == Cost(2)
    assert cost(op("_log_softmax_backward_data", (x, x, -1, x.dtype), [x, x], [x])) == Cost(1)
    turned = x.t()
    both = op("_softmax_backward_data", (turned, turned, -1, x.dtype), [turned] * 2, [like(x)])
    assert cost(both) == Cost(4)
    one = op("_softmax_backward_data", (turned, x, -1, x.dtype), [turned, x], [like(x)])
    assert cost(one) == Cost(2, exact=False)


def test_a_sum_casts_what_is_not_of_its_dtype(x):
    assert cost(op("sum", (x.bool(),), [x.bool()], [x.bool().sum()])) == Cost(2)
    assert cost(op("sum", (x,), [x], [x.sum()])) == Cost(1)
    assert cost(op("sum", (x.half(),), [x.half()], [x.sum()])) == Cost(1)  # cast inside
    assert cost(op("mean", (x.half(),), [x.half()], [x.double().mean()])) == Cost(2)
    assert cost(op("sum", (x[:0].bool(),), [x[:0].bool()], [x.long().sum()])) == Cost(1)


def test_whether_one_element_is_true_is_a_copy(x):
    one = x[0, :1]
    assert cost(op("any", (one,), [one], [one.any()])) == Cost(1, 1)
    assert cost(op("all", (one.bool(),), [one.bool()], [one.all()])) == Cost(0, 1)
    assert cost(op("equal", (one, like(one)), [one, like(one)], [])) == Cost(1, 2)


def test_a_number_is_copied_where_a_row_would_be_gone_through(x):
    number = x[0, 0]
    assert cost(op("cumsum", (number, 0), [number], [like(number)])) == Cost(0, 1)
    assert cost(op("cumsum", (number, 0), [number], [like(number).double()])) == Cost(1, 1)
    assert cost(op("max", (number, 0), [number], list(number.max(0)))) == Cost(1, 1)


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("permute_copy", ((1, 0),), Cost(1)),
        ("permute_copy", ((0, 1),), Cost(0, 1)),
        ("t_copy", (), Cost(1)),
        ("unbind_copy", (), Cost(0, 8)),
        ("unbind_copy", (1,), Cost(8)),
        ("view_copy", ((64,),), Cost(0, 1)),
        ("narrow_copy", (1, 0, 4), Cost(1)),
        ("expand_copy", ((2, 8, 8),), Cost(1)),
    ],
)
def test_the_copy_of_a_view_is_a_memcpy_where_it_lies_as_before(name, args, expected, x):
    import torch

    made = getattr(torch.ops.aten, name)(x, *args)
    written = list(made) if isinstance(made, list | tuple) else [made]
    assert cost(op(name, (x, *args), [x], written)) == expected


def test_what_is_put_into_a_view_is_copied_twice(x):
    rows, columns = x[:2].clone(), x[:, :2].clone()
    first = op("slice_scatter", (x, rows, 0, 0, 2), [x, rows], [like(x)])
    assert cost(first) == Cost(0, 2)
    assert cost(op("slice_scatter", (x, columns, 1, 0, 2), [x], [like(x)])) == Cost(1, 1)


def test_pixels_that_are_shuffled_are_copied_by_a_kernel_unless_they_stay(x):
    import torch

    image = torch.empty(1, 4, 8, 8, device="meta")
    shuffled = torch.pixel_shuffle(image, 2)
    assert cost(op("pixel_shuffle", (image, 2), [image], [shuffled])) == Cost(1)
    back = torch.pixel_unshuffle(shuffled, 2)
    assert cost(op("pixel_unshuffle", (shuffled, 2), [shuffled], [back])) == Cost(1)
    assert cost(op("pixel_shuffle", (image, 1), [image], [like(image)])) == Cost(0, 1)


def test_what_is_like_a_tensor_and_made_on_the_host_launches_nothing(x):
    import torch

    assert cost(op("ones_like", (x,), [x], [torch.ones(8, 8)])) == NOTHING
    assert cost(op("new_full", (x, (2,), 1.0), [x], [x[0, :2].clone()])) == ONE


def test_ends_on_the_gpu_are_read_whatever_is_made_between_them(x):
    import torch

    end = x[0, 0]
    assert cost(op("linspace", (end, end, 5), [end, end], [torch.ones(5)])) == Cost(0, 2)
    assert cost(op("linspace", (end, 5.0, 5), [end], [x[0, :5]])) == Cost(1, 1)


def test_a_base_that_is_a_number_is_written_first(x):
    assert cost(op("pow", (2.0, x), [x], [like(x)], pointwise=True)) == Cost(2)
    assert cost(op("pow", (1, x), [x], [like(x)], pointwise=True)) == Cost(1)
    assert cost(op("ldexp", (x, x), [x, x], [like(x)], pointwise=True)) == Cost(3)


def test_a_number_on_the_gpu_is_copied_to_fill_with_and_read_to_fill_by_a_mask(x):
    number, mask = x[0, 0].clone(), x.bool()
    assert cost(op("fill_", (x, number), [x, number], [x])) == Cost(1)
    assert cost(op("fill_", (x[0, :1], number), [x, number], [x[0, :1]])) == Cost(0, 1)
    assert cost(op("fill_", (x, 1.0), [x], [x])) == Cost(1)
    assert cost(op("masked_fill", (x, mask, number), [x, mask, number], [like(x)])) == Cost(1, 2)
    assert cost(op("masked_fill_", (x, mask, number), [x, mask, number], [x])) == Cost(1, 1)
    assert cost(op("masked_fill_", (x, mask, 0.0), [x, mask], [x])) == Cost(1)


def test_losses_of_rows_that_are_not_summed_begin_at_zero(x):
    target = x[:, 0].long()
    given = [x, target]
    assert cost(op("nll_loss_forward", (x, target, None, 0, -100), given, [x[0]])) == Cost(2)
    assert cost(op("nll_loss_forward", (x, target, None, 1, -100), given, [x[0, 0]])) == Cost(1)


def test_the_variance_of_complex_numbers_is_open(x):
    import torch

    z = torch.empty(8, dtype=torch.complex64, device="meta")
    assert cost(op("var", (z,), [z], [z.real[:1]])) == Cost(1, exact=False)


def test_dimensions_of_one_element_do_not_matter_to_a_copy(x):
    row = x[:1].as_strided((1, 8), (100, 1))
    assert cost(op("clone", (row,), [row], [like(x[:1])])) == Cost(0, 1)
    assert cost(op("copy_", (x[:1, :1], x[1, 1]), [x], [x[:1, :1]])) == Cost(0, 1)


def test_what_32_bits_cannot_address_is_open():
    import torch

    big = torch.empty(1 << 30, device="meta")
    assert cost(op("relu", (big,), [big], [like(big)], pointwise=True)) == Cost(1, exact=False)


def test_a_loss_reduces_unless_told_not_to(x):
    assert cost(op("mse_loss", (x, x), [x, x], [x.sum()])) == Cost(2)
    assert cost(op("mse_loss", (x, x, 0), [x, x], [like(x)])) == Cost(1)


# ── by the source ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("pads", "shape", "expected"),
    [
        ((1, 1), (8, 8), Cost(2)),
        ((0, 0, 0, 2), (8, 8), Cost(1, 1)),  # rows below: what was given is copied as it lies
        ((0, -2, 1, 1), (8, 8), Cost(2)),
        ((3, 0), (8,), Cost(1, 1)),
        ((1, 1, 1, 1), (2, 3, 8, 8), Cost(2)),
        ((-1, -1), (8, 8), Cost(0, exact=False)),
    ],
)
def test_padding_fills_and_copies(pads, shape, expected):
    import torch

    x = torch.empty(shape, device="meta")
    padded = torch.nn.functional.pad(x, pads)
    assert cost(op("constant_pad_nd", (x, pads), [x], [padded])) == expected


@pytest.mark.parametrize(
    ("weight", "training", "shape", "expected"),
    [
        (False, True, (8, 16, 4, 4), Cost(3)),
        (False, True, (8, 16), Cost(1, exact=False)),
        (False, False, (8, 16, 4, 4), Cost(1, exact=False)),
        (True, True, (8, 16, 4, 4), Cost(1, exact=False)),  # this may be cuDNN's
    ],
)
def test_a_batch_norm_without_weights_takes_three_in_training(weight, training, shape, expected):
    import torch

    x, w = torch.empty(shape, device="meta"), torch.empty(16, device="meta") if weight else None
    args = (x, w, w, None, None, training, 0.1, 1e-5)
    assert cost(op("native_batch_norm", args, [x], [like(x)])) == expected


@pytest.mark.parametrize(
    ("weight", "pixels", "expected"), [(False, 64, 2), (True, 64, 3), (True, 1, 2)]
)
def test_a_group_norm_takes_one_more_for_its_weights(weight, pixels, expected):
    import torch

    x, w = torch.empty(8, 16, pixels, device="meta"), torch.empty(16) if weight else None
    args = (x, w, w, 8, 16, pixels, 4, 1e-5)
    assert cost(op("native_group_norm", args, [x], [like(x)])) == Cost(expected)


@pytest.mark.parametrize(
    ("length", "dtype", "expected"),
    [(8, "float32", 1), (7, "float32", 2), (8, "bfloat16", 1), (8, "float64", 2)],
)
def test_a_layer_norm_that_cannot_read_four_at_a_time_takes_the_moments_first(
    length, dtype, expected
):
    import torch

    x = torch.empty(4, length, device="meta", dtype=getattr(torch, dtype))
    args = (x, [length], None, None, 1e-5)
    assert cost(op("native_layer_norm", args, [x], [like(x)])) == Cost(expected)


def test_a_layer_norm_copies_rows_that_are_not_contiguous(x):
    args = (x.t(), [8], None, None, 1e-5)
    assert cost(op("native_layer_norm", args, [x.t()], [like(x)])) == Cost(2)
    beside = x.flatten()[1:33].view(4, 8)
    args = (beside, [8], None, None, 1e-5)
    assert cost(op("native_layer_norm", args, [beside], [like(beside)])) == Cost(2)


def test_a_power_of_one_is_a_copy_and_of_none_a_fill(x):
    assert cost(op("pow", (x, 2), [x], [like(x)], pointwise=True)) == Cost(1)
    assert cost(op("pow", (x, 0), [x], [like(x)], pointwise=True)) == Cost(1)
    assert cost(op("pow", (x, 1.0), [x], [like(x)], pointwise=True)) == Cost(0, 1)
    assert cost(op("pow", (x.t(), 1), [x.t()], [like(x)], pointwise=True)) == Cost(1)
    assert cost(op("pow_", (x, 1), [x], [x], pointwise=True)) == NOTHING


def test_isinf_is_two_of_floats_and_one_of_whole_numbers(x):
    assert cost(op("isinf", (x,), [x], [x.bool()], pointwise=True)) == Cost(2)
    assert cost(op("isinf", (x.long(),), [x.long()], [x.bool()], pointwise=True)) == Cost(1)


@pytest.mark.parametrize(
    "name", ["isinf", "native_layer_norm", "native_group_norm", "pow", "index"]
)
def test_a_rule_has_nothing_to_say_of_nothing(name, x):
    args = (x[:0], [x.long()[0]] if name == "index" else [8])
    assert cost(op(name, args, [x[:0]], [x[:0]])) == NOTHING


def test_a_search_that_finds_nothing_has_searched(x):
    masked = op("index", (x, [x.bool()]), [x, x.bool()], [x[0, :0]])
    assert cost(masked) == Cost(2, 1, exact=False)
    nothing = x.long()[:0]
    assert cost(op("nonzero", (x,), [x], [nothing])) == Cost(1, exact=False)
    assert cost(op("nonzero", (x[:0],), [x[:0]], [nothing])) == NOTHING
