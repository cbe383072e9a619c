"""Each call finds the user's state as the first did, and afterwards it is as the user left it."""

import functools
import os
import random
import warnings

import pytest
import torch

from kernelcount.state import UserState, module_of
from kernelcount.state.reached import Reached


def remember(function=None, *args, backward=False, **kwargs):
    return UserState(function or (lambda: None), (args, kwargs), backward=backward)


def test_a_list_that_is_given_twice_is_given_twice_in_a_call_too():
    shared = [torch.ones(2)]
    (first, second), _ = remember(None, shared, shared).before_call()
    assert first is second
    assert first is not shared


# ── arguments ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.arange(6.0),
        lambda: torch.arange(12.0).view(3, 4).t(),
        lambda: torch.arange(12.0)[::3],
        lambda: torch.arange(12.0)[5:],
        lambda: torch.arange(3, dtype=torch.int64),
        lambda: torch.tensor([True, False]),
        lambda: torch.arange(3.0).to(torch.bfloat16),
        lambda: torch.view_as_complex(torch.arange(6.0).view(3, 2)),
        lambda: torch.tensor(1.0),
        lambda: torch.arange(3.0).requires_grad_(),
        lambda: torch.arange(3.0, requires_grad=True) * 2,
        lambda: torch.nn.Parameter(torch.arange(3.0)),
    ],
)
def test_an_argument_changed_in_place_is_put_back_at_its_address(make):
    x = make()
    before, address, strides = x.detach().clone(), x.data_ptr(), x.stride()
    state = remember(None, x)
    with torch.no_grad():
        x.zero_()
    (again,), _ = state.before_call()
    assert again is x
    assert torch.equal(x.detach(), before)
    assert (x.data_ptr(), x.stride()) == (address, strides)
    assert state.mutated


def test_what_is_not_changed_is_not_copied_and_not_said_to_be():
    x = torch.arange(3.0)
    state = remember(None, x)
    for _ in range(3):
        state.before_call()
    version = x._version
    state.restore()
    assert x._version == version
    assert not state.mutated


def test_arguments_that_share_a_storage_are_put_back_together():
    whole = torch.arange(6.0)
    part = whole[2:4]
    state = remember(None, whole, part)
    part.add_(10)
    state.before_call()
    whole.mul_(2)
    state.before_call()
    assert whole.tolist() == [0, 1, 2, 3, 4, 5]
    assert part.tolist() == [2, 3]


def test_an_expanded_argument_is_left_alone_and_its_base_is_put_back():
    base = torch.ones(1, 3)
    wide = base.expand(4, 3)
    state = remember(None, base, wide)
    base.zero_()
    state.before_call()
    assert wide.sum() == 12


def test_an_inference_tensor_counts_no_versions_and_is_put_back_all_the_same():
    with torch.inference_mode():
        x = torch.tensor([1.0, float("nan")])
    state = remember(None, x)
    state.before_call()
    assert not state.mutated
    with torch.inference_mode():
        x.zero_()
    state.before_call()
    assert x[0] == 1
    assert state.mutated


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.data.mul_(2),
        lambda x: x.numpy().__imul__(2),
        lambda x: torch.from_dlpack(x.detach()).mul_(2),
    ],
    ids=["data", "numpy", "dlpack"],
)
def test_a_change_behind_the_version_counters_back_is_found_by_looking(change):
    x = torch.arange(3.0)
    state = remember(None, x)
    change(x)
    state.look_closely()
    state.before_call()
    assert x.tolist() == [0, 1, 2]
    assert state.mutated
    change(x)  # from now on it is put back unasked
    state.before_call()
    assert x.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.resize_(100),
        lambda x: x.t_(),
        lambda x: x.unsqueeze_(0),
        lambda x: x.set_(torch.zeros(5)),
        lambda x: setattr(x, "data", torch.zeros(2, 3)),
        lambda x: x.untyped_storage().resize_(0),
    ],
    ids=["resize", "transpose", "unsqueeze", "set", "data", "freed"],
)
def test_a_change_of_shape_or_storage_is_undone(change):
    x = torch.arange(6.0).view(2, 3)
    state = remember(None, x)
    for _ in range(2):
        change(x)
        state.before_call()
        assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert state.mutated


def test_requires_grad_set_by_a_call_is_unset():
    x = torch.ones(3)
    state = remember(None, x)
    x.requires_grad_()
    state.before_call()
    assert not x.requires_grad


def test_an_argument_drawn_into_a_graph_is_a_leaf_again():
    x, w = torch.ones(3), torch.ones(3, requires_grad=True)
    state = remember(None, x)
    x.add_(w)
    state.before_call()
    assert x.is_leaf
    assert not x.requires_grad
    assert x.tolist() == [1, 1, 1]


def test_tensors_of_which_there_is_no_copy_are_left_alone():
    sparse = torch.eye(3).to_sparse()
    meta = torch.ones(3, device="meta")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's, on what is new and what is old in it
        quantised = torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8)
        nested = torch.nested.nested_tensor([torch.ones(1), torch.ones(2)])
    state = remember(None, sparse, meta, quantised, nested)
    state.before_call()
    state.restore()
    assert not state.mutated


def test_without_room_for_a_copy_a_change_is_told(monkeypatch):
    monkeypatch.setattr("kernelcount.state.kept.available", lambda: 40)
    small, large = torch.ones(2), torch.ones(100)
    state = remember(None, small, large)
    small.zero_()
    large.zero_()
    state.before_call()
    assert small.sum() == 2
    assert large.sum() == 0
    assert state.unrestored


def test_copies_of_what_no_call_has_changed_are_freed_and_the_others_kept():
    kept, freed = torch.ones(2), torch.ones(2)
    state = remember(None, kept, freed)
    kept.zero_()
    state.before_call()
    state.forget_unchanged()
    kept.zero_()
    freed.zero_()
    state.before_call()
    assert kept.sum() == 2
    assert state.unrestored


# ── gradients ────────────────────────────────────────────────────────────────────────────────────


def test_a_gradient_is_as_it_was():
    x = torch.ones(3, requires_grad=True)
    x.grad = torch.full((3,), 5.0)
    gradient = x.grad
    state = remember(None, x)
    (x * 2).sum().backward()
    state.before_call()
    assert x.grad is gradient
    assert x.grad.tolist() == [5, 5, 5]
    x.grad = None
    state.restore()
    assert x.grad is gradient


def test_a_call_that_goes_backward_finds_none_and_afterwards_there_is_the_users():
    x = torch.ones(3, requires_grad=True)
    x.grad = torch.full((3,), 5.0)
    state = remember(None, x, backward=True)
    state.before_call()
    assert x.grad is None
    state.restore()
    assert x.grad.tolist() == [5, 5, 5]


def test_gradients_of_a_model_in_a_global_add_up_from_call_to_call_but_not_beyond():
    model = torch.nn.Linear(2, 1)
    state = remember(reached_by_closure(model))
    model(torch.ones(2)).sum().backward()
    state.before_call()
    assert model.weight.grad is not None
    state.restore()
    assert model.weight.grad is None


# ── modules, optimizers, what a function reaches ─────────────────────────────────────────────────


def test_batch_norms_running_statistics_are_the_same_in_every_call():
    norm = torch.nn.BatchNorm1d(3)
    state = remember(norm)
    norm(torch.randn(8, 3))
    state.look_closely()  # the CPU's batch norm does not count up the mean's version
    state.before_call()
    assert norm.running_mean.tolist() == [0, 0, 0]
    assert norm.num_batches_tracked == 0
    assert state.module_changed
    assert not state.mutated


def reached_by_closure(model):
    return lambda x: model(x) + 1


def reached_by_partial(model):
    return functools.partial(lambda m, x: m(x), model)


def reached_by_default(model):
    def call(x, m=model):
        return m(x)

    return call


class Holder:
    def __init__(self, model):
        self.models = {"one": [model]}

    def __call__(self, x):
        return self.models["one"][0](x)

    def run(self, x):
        return self(x)


def reached_by_wraps(model):
    inner = reached_by_closure(model)

    @functools.wraps(inner)
    def outer(x):
        return None

    return outer


@pytest.mark.parametrize(
    "reach",
    [
        reached_by_closure,
        reached_by_partial,
        reached_by_default,
        reached_by_wraps,
        Holder,
        lambda model: Holder(model).run,
        lambda model: functools.lru_cache(reached_by_closure(model)),
        lambda model: torch.compile(reached_by_closure(model), backend="eager"),
    ],
)
def test_a_model_that_a_function_reaches_is_put_back_at_the_end(reach):
    model = torch.nn.BatchNorm1d(3)
    state = remember(reach(model))
    model(torch.randn(8, 3))
    model.eval()
    state.restore()
    assert model.num_batches_tracked == 0
    assert model.training


_model = torch.nn.Linear(2, 2)
_optimizer = torch.optim.Adam(_model.parameters(), lr=0.1)


def train(x):
    _optimizer.zero_grad()
    _model(x).sum().backward()
    _optimizer.step()


def test_an_optimizers_step_is_undone_in_parameters_and_in_its_state():
    weight = _model.weight.detach().clone()
    state = remember(train, torch.ones(2))
    train(torch.ones(2))
    _optimizer.param_groups[0]["lr"] = 7.0
    assert not torch.equal(_model.weight, weight)
    state.restore()
    assert torch.equal(_model.weight, weight)
    assert len(_optimizer.state) == 0
    assert _optimizer.param_groups[0]["lr"] == 0.1


def test_an_optimizers_moments_are_put_back_where_it_had_some():
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.Adam(model.parameters())

    def step():
        optimizer.zero_grad()
        model(torch.ones(2)).sum().backward()
        optimizer.step()

    step()
    moment = optimizer.state[model.weight]["exp_avg"].clone()
    state = remember(step)
    step()
    state.restore()
    assert torch.equal(optimizer.state[model.weight]["exp_avg"], moment)
    assert optimizer.state[model.weight]["step"] == 1


def test_a_buffer_that_is_replaced_is_the_old_one_at_the_end():
    class Growing(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("past", torch.zeros(1))

        def forward(self, x):
            self.past = torch.cat([self.past, x])

    module = Growing()
    past = module.past
    state = remember(module)
    module(torch.ones(1))
    state.restore()
    assert module.past is past


def test_each_submodule_keeps_its_own_mode():
    module = torch.nn.Sequential(torch.nn.Dropout(), torch.nn.BatchNorm1d(2).eval())
    state = remember(module)
    module.eval()
    state.restore()
    assert [m.training for m in module.modules()] == [True, True, False]


class WithMethod(torch.nn.Module):
    def run(self, x):
        return x


def test_the_module_behind_a_method_or_a_partial_is_found():
    module = WithMethod()
    assert module_of(module) is module
    assert module_of(module.run) is module
    assert module_of(functools.partial(module.run, 1)) is module
    assert module_of(len) is None


def test_a_hostile_object_in_a_global_is_passed_over():
    class Hostile:
        @property
        def __dict__(self):
            raise RuntimeError("do not look")

        def __getattr__(self, name):
            raise RuntimeError("do not look")

    hostile = Hostile()
    remember(lambda: hostile).restore()


def test_a_long_list_in_a_global_is_not_searched_to_its_end():
    first, last = torch.ones(1), torch.ones(1)
    many = [first, *range(1_000_000), last]
    (found,) = Reached(lambda: many, ((), {})).tensors
    assert found is last


# ── random numbers and settings ──────────────────────────────────────────────────────────────────


def test_random_numbers_go_on_as_if_nothing_had_been_drawn():
    import numpy as np

    state = remember()
    first = (torch.rand(1).item(), random.random(), np.random.rand())
    torch.manual_seed(3)
    random.seed(3)
    np.random.seed(3)
    state.restore()
    assert (torch.rand(1).item(), random.random(), np.random.rand()) == first


@pytest.mark.parametrize(
    ("get", "change"),
    [
        (torch.get_default_dtype, lambda: torch.set_default_dtype(torch.float64)),
        (torch.is_grad_enabled, lambda: torch.set_grad_enabled(False)),
        (torch.get_default_device, lambda: torch.set_default_device("meta")),
        (torch.get_float32_matmul_precision, lambda: torch.set_float32_matmul_precision("medium")),
        (torch.get_num_threads, lambda: torch.set_num_threads(1)),
        (
            torch.are_deterministic_algorithms_enabled,
            lambda: torch.use_deterministic_algorithms(mode=True),
        ),
        (
            torch.is_deterministic_algorithms_warn_only_enabled,
            lambda: torch.use_deterministic_algorithms(mode=True, warn_only=True),
        ),
        (
            lambda: torch.backends.cudnn.benchmark,
            lambda: setattr(torch.backends.cudnn, "benchmark", True),
        ),
        (
            lambda: torch.backends.cudnn.deterministic,
            lambda: setattr(torch.backends.cudnn, "deterministic", True),
        ),
        (os.getcwd, lambda: os.chdir("/")),
    ],
)
def test_a_setting_of_the_process_is_put_back(get, change):
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    before = get()
    state = remember()
    change()
    assert get() != before
    state.restore()
    assert get() == before
    torch.set_num_threads(threads)


def test_a_folder_that_is_gone_is_no_error(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    remember().restore()
