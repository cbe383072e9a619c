"""Tensors are shown in float64, and share memory as they do otherwise."""

import pytest
import torch

from kernelcount.probes.doubles import doubles, in_float64
from kernelcount.probes.nudge import Nudge


def made(count=16, **options):
    return torch.arange(float(count), **options)


def whole():
    y = made().view(4, 4)
    return y, y[:2]


def ways():
    y = made().view(4, 4)
    c = torch.complex(made(8), made(8))
    numpys = made(8).numpy()
    i = torch.arange(16)
    return {
        "a part": [y, y[:2]],
        "a part, first": [y[1:], y],
        "two parts that cross": [y[:3], y[1:]],
        "a transposed one": [y, y.t()],
        "a column": [y[:, 1], y],
        "a diagonal": [y, y.diagonal()],
        "detached": [y, y.detach()],
        "its data": [y, y.data],
        "with gaps": [y.view(-1)[::2], y.view(-1)[::3]],
        "expanded": [y[:1].expand(4, 4), y],
        "windows": [y.view(-1).unfold(0, 4, 2), y],
        "windows alone": [y.view(-1).unfold(0, 4, 2)],
        "complex and its parts": [c, torch.view_as_real(c)],
        "one part of complex numbers": [c, torch.view_as_real(c)[..., 1]],
        "two of NumPy's": [torch.from_numpy(numpys), torch.from_numpy(numpys[2:])],
        "integers": [i, i[3:]],
        "three": [y, y[1:3], y[2]],
        "the last of them and one apart": [y, made(3), y[3:]],
    }


@pytest.mark.parametrize("way", ways())
def test_what_is_written_into_one_is_read_in_the_others_as_it_is_otherwise(way):
    """Whichever is written into, in a run in the own dtype and in one in float64."""
    for i in range(len(ways()[way])):
        own, shown = ways()[way], ways()[way]
        if any(s == 0 for s in own[i].stride()):
            continue  # nobody may write into it
        first = [t.clone() for t in own]
        own[i].add_(100)
        with in_float64(shown):
            assert all(t.dtype in (torch.float64, torch.complex128, torch.int64) for t in shown)
            assert [t.stride() for t in shown] == [t.stride() for t in own]
            shown[i].add_(100)
            for one, other in zip(own, shown, strict=True):
                torch.testing.assert_close(other, one, check_dtype=False, rtol=0, atol=0)
        for one, other in zip(first, shown, strict=True):
            assert torch.equal(one, other)


def test_one_tensor_given_twice_stays_one():
    y = made()
    with in_float64([y, y]) as shown:
        assert len(shown) == 1
        assert shown[0][1] is torch.float32


def test_those_that_share_nothing_share_nothing():
    y = made()
    one, two = doubles([y[:8], y[8:]])
    one.zero_()
    assert torch.equal(two, y[8:].double())


def test_memory_that_is_read_as_floats_and_as_bits_has_no_like_in_float64():
    y = made()
    with pytest.raises(RuntimeError, match="several dtypes"), in_float64([y, y.view(torch.int32)]):
        pass
    assert torch.equal(y, made())


def test_shared_memory_is_moved_once():
    y = made() + 1
    one, two = doubles([y, y[4:]], Nudge(1e-3, 1))
    assert torch.equal(one[4:], two)
    torch.testing.assert_close((one / y - 1).abs(), torch.full_like(one, 1e-3))


def test_what_a_function_reaches_is_in_float64_meanwhile_and_as_it_was_afterwards():
    weight = torch.nn.Parameter(made(2))
    place, version = weight.data_ptr(), weight._version
    with in_float64([weight]):
        assert (weight.dtype, weight.grad) == (torch.float64, None)
        weight.sum().backward()
    assert (weight.dtype, weight.data_ptr(), weight._version) == (torch.float32, place, version)
    assert weight.grad is None


def test_gradients_go_on_from_what_they_are_and_are_as_they_were_afterwards():
    weight = torch.nn.Parameter(made(2))
    weight.grad = gradient = torch.tensor([3.0, 4.0])
    with in_float64([weight]):
        assert weight.grad is gradient
        assert weight.grad.dtype == torch.float64
        weight.sum().backward()
        assert weight.grad.tolist() == [4.0, 5.0]
    assert weight.grad is gradient
    assert (gradient.dtype, gradient.tolist()) == (torch.float32, [3.0, 4.0])


def test_floats_are_shown_in_float64_and_nothing_else():
    held = [made(1), torch.arange(2), torch.ones(1, dtype=torch.complex64), torch.ones(1).bool()]
    with in_float64(held):
        assert [t.dtype for t in held] == [
            torch.float64, torch.int64, torch.complex128, torch.bool,
        ]  # fmt: skip


def test_leaves_keep_asking_for_gradients_and_the_rest_comes_of_them():
    leaf = made(4).requires_grad_()
    part = leaf[:2]
    with in_float64([leaf, part]):
        assert leaf.requires_grad
        part.square().sum().backward()
        assert leaf.grad.tolist() == [0.0, 2.0, 0.0, 0.0]
    assert leaf.grad is None


def test_it_is_as_it_was_also_where_the_function_raises():
    y = made()

    def tired():
        y.zero_()
        raise ValueError("tired")

    with pytest.raises(ValueError, match="tired"), in_float64([y]):
        tired()
    assert torch.equal(y, made())


def test_what_has_no_memory_of_its_own_is_shown_as_well():
    sparse = torch.eye(3).to_sparse()
    with in_float64([sparse]):
        assert sparse.dtype == torch.float64
    assert sparse.dtype == torch.float32


def test_an_inference_tensor_is_shown_as_well():
    with torch.inference_mode():
        y = made()
    with in_float64([y]):
        assert y.dtype == torch.float64
    assert torch.equal(y, made())
