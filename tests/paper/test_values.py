"""Values that are worked out late: as they were when the code asked, and no more than it takes."""

import pytest

from kernelcount.paper import mode, steps
from kernelcount.paper.log import Log
from kernelcount.paper.values import Values

GPU = "meta"  # what plays it


@pytest.fixture
def values():
    return Values()


@pytest.fixture
def on_paper(values):
    with mode.make(Log("H200"), values, {}):
        yield


@pytest.fixture
def done(monkeypatch):
    """The ops that were done on values, by name."""
    names = []
    result = steps.Step.result

    def noted(step, contents):
        names.append(step.func.name().removeprefix("aten::"))
        return result(step, contents)

    monkeypatch.setattr(steps.Step, "result", noted)
    return names


@pytest.mark.usefixtures("on_paper")
def test_only_what_a_value_hangs_on_is_done(done):
    import torch

    a = torch.ones(4, device=GPU)
    a.exp()
    assert (a * 2).sum().item() == 8
    assert done == ["ones", "mul.Tensor", "sum", "_local_scalar_dense"]


@pytest.mark.usefixtures("on_paper")
def test_nothing_is_done_twice(done):
    import torch

    total = torch.ones(4, device=GPU).sum()
    assert (total.item(), total.item()) == (4, 4)
    assert done.count("sum") == 1


@pytest.mark.usefixtures("on_paper")
def test_what_was_read_before_a_change_in_place_is_the_old_value():
    import torch

    a = torch.zeros(4, device=GPU)
    before = a + 1
    a.add_(5)
    assert (a.sum().item(), before.sum().item()) == (20, 4)


@pytest.mark.usefixtures("on_paper")
def test_views_share_their_memory():
    import torch

    a = torch.zeros(4, device=GPU)
    a[1:3].fill_(7)
    assert a.tolist() == [0, 7, 7, 0]


@pytest.mark.usefixtures("on_paper")
def test_a_copy_from_the_host_is_as_the_host_was_then():
    import torch

    host = torch.ones(4)
    copied = host.to(GPU)
    host.add_(1)
    assert copied.sum().item() == 4


@pytest.mark.usefixtures("on_paper")
def test_a_copy_to_the_host_changes_the_hosts_own_memory():
    import torch

    host = torch.zeros(2, 2)
    row = host[0]
    assert row.copy_(torch.ones(2, device=GPU)) is row
    assert host.tolist() == [[1, 1], [0, 0]]


@pytest.mark.usefixtures("on_paper")
def test_conjugates_keep_their_sign():
    import torch

    z = torch.complex(torch.ones(2, device=GPU), torch.ones(2, device=GPU))
    assert z.conj().sum().item() == 2 - 2j


@pytest.mark.usefixtures("on_paper")
def test_a_new_shape_that_hangs_on_values_goes_on_with_them():
    import torch

    a = torch.arange(6, device=GPU)
    assert a[a > 3].shape == (2,)
    assert a[a > 3].sum().item() == 9


def test_random_numbers_of_the_gpu_leave_the_hosts_alone(values):
    import torch

    with mode.make(Log("H200"), values, {}):
        state = torch.get_rng_state()
        values.seed(1)
        first = torch.rand(4, device=GPU).tolist()
        values.seed(1)
        assert torch.rand(4, device=GPU).tolist() == first
        assert torch.rand(4, device=GPU).tolist() != first
        assert torch.equal(torch.get_rng_state(), state)


def test_what_the_cpu_does_not_have_is_doubtful_only_where_it_matters(values):
    import torch

    q = torch.ones(1, 1, 8, 8, device=GPU, dtype=torch.bfloat16)
    with mode.make(Log("H200"), values, {}):
        attended = torch.ops.aten._scaled_dot_product_flash_attention.default(q, q, q)[0]
        torch.ones(1, device=GPU).item()
        assert not values.doubtful
        attended.sum().item()
        assert values.doubtful


def test_memory_of_tensors_that_are_gone_is_let_go(values):
    import torch

    with mode.make(Log("H200"), values, {}):
        for _ in range(3000):
            torch.ones(1, device=GPU)
        assert len(values._memories) <= 2048
