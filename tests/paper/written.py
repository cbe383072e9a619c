"""Functions of which Inductor's kernels touch parts of arrays, with what they are given."""

import torch


def keeps_a_key(cache, k, q):
    cache[:, :, 5:6] = k
    return (q * cache).sum(-1)


def make_keeps_a_key(n, device):
    one = (2, 4, 1, 16)
    return [torch.randn(s, device=device) for s in ((2, 4, n, 16), one, one)]


def writes_columns(x, y):
    x[:, :10] = y
    return x * 2


def make_writes_columns(n, device):
    return [torch.randn(n, n, device=device), torch.randn(n, 10, device=device)]


def adds_to_a_slice(x, y):
    x[10:20].add_(y[10:20])
    return x.sum()


def make_adds_to_a_slice(n, device):
    return [torch.randn(n, device=device), torch.randn(n, device=device)]


def copies_into_a_view(x, y):
    x[:10].copy_(y[:10])
    return x


make_copies_into_a_view = make_adds_to_a_slice


def puts(x, i, v):
    x[i] = v
    return x


def make_puts(n, device):
    i = torch.arange(8, device=device)
    return [torch.randn(n, 4, device=device), i, torch.randn(8, 4, device=device)]


def puts_a_number(x, i, _):
    x[i] = 0.0
    return x


def copies_rows(x, i, v):
    return x.index_copy_(0, i, v)


def adds_rows(x, i, v):
    return x.index_add_(0, i, v)


make_puts_a_number = make_copies_rows = make_adds_rows = make_puts


def scatters(x, i, v):
    return x.scatter(0, i, v)


def make_scatters(n, device):
    i = torch.zeros(8, 4, dtype=torch.int64, device=device)
    return [torch.randn(n, 4, device=device), i, torch.randn(8, 4, device=device)]


def returns_what_it_changes(x, y):
    x.add_(1)
    z = x + y
    x.mul_(2)
    return x, z


make_returns_what_it_changes = make_adds_to_a_slice


def differs(x, _):
    return x[1:] - x[:-1]


def squares(x, _):
    return x * x


def joins_a_part(x, y):
    return torch.cat([x[:10], y]) + 1


def averages_windows(x, _):
    return x.unfold(0, 4, 1).sum(-1)


make_differs = make_squares = make_joins_a_part = make_averages_windows = make_adds_to_a_slice


def rotates(x, cos, sin):
    q = x[:, :128].view(-1, 2, 64)
    half = torch.cat([-q[..., 32:], q[..., :32]], -1)
    return q * cos + half * sin


def make_rotates(n, device):
    angles = [torch.randn(n, 1, 64, device=device) for _ in range(2)]
    return [torch.randn(n, 384, device=device), *angles]


def multiplies_matrices(a, b):
    return torch.einsum("bij,bjk->bik", a, b)


def make_multiplies_matrices(n, device):
    return [torch.randn(2, n, n, dtype=torch.complex64, device=device) for _ in range(2)]


def multiplies_by_its_conjugate(a, _):
    return a * a.conj()


make_multiplies_by_its_conjugate = make_multiplies_matrices


def multiplies_after_writing(x, y):
    x[:, :10] = y
    return x @ x.t()


make_multiplies_after_writing = make_writes_columns


def looks_up_twice(x, i, _):
    return x[i] + x[i] * 2


def looks_up_by_two(x, i, _):
    return x[i] + x[i + 1]


make_looks_up_twice = make_looks_up_by_two = make_puts
