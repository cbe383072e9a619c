"""Functions whose counts on paper are known, with what makes each hard."""

import torch
import torch.nn.functional as F


def add_relu(a, b):
    return (a + b).relu()


def view_only(a):
    return a.view(-1, 2).t()


def asks_where_it_is(a):
    ours = a.is_cuda and a.device.type == "cuda" and torch.cuda.is_available()
    return (a + torch.ones(1, device="cuda")).to("cuda") if ours else a


def from_the_host(a, h):
    return a + h.cuda()


def make_from_the_host(n=64, device="cuda"):
    return torch.randn(n, device=device), torch.randn(n)


def branches_on_a_value(a):
    return a * 2 if a.sum() > 0 else a


def make_branches_on_a_value(n=64, device="cuda"):
    return (torch.rand(n, device=device),)


def masked(a):
    return a[a > 0]


def trains(x, w):
    loss = F.relu(x @ w).sum()
    loss.backward()
    gradient = w.grad
    w.grad = None
    return gradient


def make_trains(n=64, device="cuda"):
    return torch.randn(n, n, device=device), torch.randn(n, n, device=device, requires_grad=True)


def breaks(a, b):
    c = a + b
    print("", end="")
    return c.relu()


def drops(a):
    return F.dropout(a, 0.5, True)


def attends(q, k, v):
    return F.scaled_dot_product_attention(q, k, v)


def make_attends(n=64, device="cuda"):
    return tuple(torch.randn(2, 8, n, 64, device=device, dtype=torch.bfloat16) for _ in range(3))


def normalises(x, w):
    return F.rms_norm(x, (x.shape[-1],), w)


def make_normalises(n=64, device="cuda"):
    return torch.randn(4, n, device=device), torch.randn(n, device=device)


def copies(a):
    return a.clone()


def copies_across(a):
    return a.view(8, -1).t().contiguous()


def upsamples(a):
    return F.interpolate(a.view(1, 1, 8, -1), scale_factor=2)


def infers(a):
    with torch.inference_mode():
        return F.interpolate(F.dropout(a, 0.5, True).view(1, 1, 8, -1), scale_factor=2)


def in_place(a, b):
    return a.add_(b).relu_()


def shows(a):
    return len(repr(a))


def steps(x):
    w = torch.nn.Parameter(torch.ones(1, device=x.device))
    optimizer = torch.optim.SGD([w], lr=0.1)
    (x * w).sum().backward()
    optimizer.step()
    return w.detach()


def with_gradients(n, device):
    parameters = [torch.nn.Parameter(torch.ones(n, device=device)) for _ in range(3)]
    for p in parameters:
        p.grad = torch.ones(n, device=device)
    return parameters


def make_adam_steps(n=64, device="cuda"):
    return (torch.optim.Adam(with_gradients(n, device)),)


def adam_steps(optimizer):
    optimizer.step()


def make_fused_steps(n=64, device="cuda"):
    return (torch.optim.AdamW(with_gradients(n, device), fused=True),)


def fused_steps(optimizer):
    optimizer.step()


def make_clips(n=64, device="cuda"):
    return (with_gradients(n, device),)


def clips(w):
    torch.nn.utils.clip_grad_norm_(w, 1.0)


def scales_by_the_host(a):
    scale = torch.tensor(2.0)
    return a / (scale * 3 + 1), scale


def make_changes_the_hosts_too_late(n=64, device="cuda"):
    return torch.randn(n, device=device), torch.tensor(2.0)


def changes_the_hosts_too_late(a, scale):
    b = a * scale
    scale.add_(1)
    return b * scale


def gives_back_to_the_host(a):
    return (a * 2).cpu()


def converts_for_the_host(a):
    return (a * 2).to("cpu", torch.float16)


def makes_on_the_host(a):
    return a + 1, torch.ones(64) * 2


def by_a_list(a):
    return a[[0, 2, 4]]


def make_recurs(n=64, device="cuda"):
    return torch.nn.LSTM(n, n, 2).to(device), torch.randn(3, n, device=device)


def recurs(network, x):
    network(x)[0].sum().backward()


def chooses(a):
    return torch.cond(a.sum() > 0, lambda t: t * 2, lambda t: t - 1, (a,))


def make_chooses(n=64, device="cuda"):
    return (torch.rand(n, device=device),)


def is_sparse(a):
    return a.view(8, -1).to_sparse() @ a.view(-1, 8)


def sorts(a):
    return a.sort(-1).values


def last_rows(a):
    return a.view(2, 4, 8)[:, -1, :].softmax(-1)


def goes_on_without(a):
    try:
        return a.sum().item()
    except Exception:
        return a + 1


class Model(torch.nn.Module):
    """A layer whose module is moved to the GPU that is not there."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(64, 64)

    def forward(self, a):
        return self.layer(a.view(-1, 64)).relu()


@torch.compile
def compiled_already(a, b):
    return (a + b).relu()


def raises(a):
    raise ValueError("mine")


def make_multiplies(n=64, device="cuda"):
    return (
        torch.randn(n, 32, device=device),
        torch.randn(32, n, device=device, requires_grad=True),
    )


def multiplies(x, w):
    (x @ w).sum().backward()
    gradient, w.grad = w.grad, None
    return gradient


def make_multiplies_halves(n=64, device="cuda"):
    return tuple(torch.randn(3, n, n, device=device, dtype=torch.bfloat16) for _ in range(2))


def multiplies_halves(a, b):
    return torch.relu(a @ b) + (a.float() @ b.float())


def make_convolves(n=64, device="cuda"):
    return (
        torch.randn(2, 3, n, n, device=device),
        torch.randn(4, 3, 3, 3, device=device, requires_grad=True),
    )


def convolves(x, w):
    F.conv2d(x, w, padding=1).sum().backward()
    gradient, w.grad = w.grad, None
    return gradient


@torch.library.custom_op("functions::scaled", mutates_args={"x"})
def scaled(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """An op of the user's own, which changes one argument and gives a new tensor."""
    x.mul_(2)
    return x + y


@scaled.register_fake
def _(x, y):
    return torch.empty_like(x)


def calls_its_own(x, y):
    return scaled(x, y).relu()


def make_looks_up(n=64, device="cuda"):
    return torch.randn(1000 * n, 16, device=device), torch.randint(0, 1000, (n,), device=device)


def looks_up(table, index):
    return F.embedding(index, table)


def make_puts(n=64, device="cuda"):
    return torch.zeros(1000, n, device=device), torch.tensor([3, 5], device=device)


def puts(cache, index):
    cache[index] = 1.0
    return cache.index_add_(0, index, torch.ones(2, cache.shape[1], device=cache.device))


@torch.library.custom_op("functions::bumped", mutates_args={"x"})
def bumped(x: torch.Tensor) -> None:
    """An op of the user's own, which gives nothing."""
    x.add_(1)


def bumps(a, b):
    c = a + b
    bumped(c)
    return c.relu()


def views(x):
    return x.view(-1)


KEPT = {}


def remembers(x):
    if "sum" not in KEPT:
        KEPT["sum"] = x + 1
    return KEPT["sum"]


def attends_where_allowed(query, mask):
    return torch.nn.functional.scaled_dot_product_attention(
        query, query[:, :1], query[:, :1], mask, enable_gqa=True
    )


def make_attends_where_allowed(n, device):
    query = torch.randn(1, 2, n, 8, device=device, requires_grad=True)
    return query, torch.ones(n, n, dtype=torch.bool, device=device)
