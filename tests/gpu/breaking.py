"""Functions that torch.compile does not take as one graph, for tests on a GPU."""

import torch


def prints(a, b):
    c = a + b
    print("", end="")
    return c.relu()


def branches(a, b):
    c = a + b
    if c.sum() > -1e30:
        c = c * 2
    return c.relu()


def reads(a):
    peak = a.abs().max().item()
    return torch.relu(a / (peak + 1e-6)) - 0.5


def twice(a, b):
    c = a + b
    print("", end="")
    c = c.relu()
    torch._dynamo.graph_break()
    return c * 2


def unbroken(a, b):
    return (a + b).relu()


_calls = [""]


def changes(a):
    """Has another guard failing at each of its first calls, and none later."""
    if len(_calls[0]) < 3:
        _calls[0] += "t"
    return a + len(_calls[0])


def mutates(a):
    a.add_(1)
    return a @ a
