"""Numbers are moved by a little, and what is computed of them with them."""

import torch

from kernelcount.probes.nudge import Nudge

X = torch.tensor([1.0, -2.0, 3.0, 4.0], dtype=torch.float64)
BY = 1e-3


def moved(function, trial):
    with Nudge(BY, trial).operations():
        return function(X)


def test_each_number_moves_by_the_part_that_was_asked_for():
    for trial in range(4):
        new = X.clone()
        Nudge(BY, trial).move(new)
        torch.testing.assert_close((new / X - 1).abs(), torch.full_like(X, BY))


def test_every_other_trial_moves_a_tensor_as_a_whole():
    ratios = []
    for trial in (0, 1):
        new = torch.ones(64, dtype=torch.float64)
        Nudge(BY, trial).move(new)
        ratios.append(len(new.unique()))
    assert ratios == [1, 2]


def test_what_is_not_in_float64_stays():
    one = torch.ones(3)
    Nudge(BY, 1).move(one)
    assert torch.equal(one, torch.ones(3))


def test_what_an_operation_makes_is_moved_and_what_one_picks_is_not():
    assert not torch.equal(moved(lambda x: x + 1, 1), X + 1)
    for function in (lambda x: x[1:], lambda x: x.view(2, 2), lambda x: x.masked_fill(x > 0, -1e9)):
        assert torch.equal(moved(function, 1), function(X))


def test_numbers_that_cancel_move_as_far_as_what_they_come_from():
    away = (moved(lambda x: (x + 1e4) - 1e4, 1) - X).abs()
    assert (away > 0.9 * BY * 1e4).all()


def test_gradients_move_too():
    def gradient(nudge):
        x = X.clone().requires_grad_()
        with nudge.operations():
            (x * 2).sum().backward()
        return x.grad

    assert not torch.equal(gradient(Nudge(BY, 1)), torch.full_like(X, 2.0))
