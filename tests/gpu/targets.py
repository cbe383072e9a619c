"""Functions for tests on a GPU, each with something that makes counting hard."""

import torch


def add_relu(a, b):
    return (a + b).relu()


def two_streams(a, b):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        c = a * 2
    d = b + 1
    torch.cuda.current_stream().wait_stream(side)
    return c + d


def backward_thread(x, w):
    w = w.detach().requires_grad_()
    (x * w).relu().sum().backward()
    return w.grad


def nothing(a):
    return a.view(-1, 2).t()


def bad_index(a):
    """Poisons the context: a device-side assert."""
    if torch.compiler.is_compiling():
        return a + 1
    i = torch.full((4,), a.numel() + 10, device=a.device)
    return torch.index_select(a, 0, i)


def too_much(a):
    return a[:, None] * a[None, :]


def profiles_itself(a):
    with torch.profiler.profile():
        return a + 1


_graphs: dict = {}


def replayed(x):
    key = (x.data_ptr(), x.shape)
    if key not in _graphs:
        torch.relu(x + 1)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = torch.relu(x + 1) * 2
        _graphs[key] = (graph, out)
    graph, out = _graphs[key]
    graph.replay()
    return out


def on_second_gpu(a):
    b = a.to("cuda:1")
    return (b + 1).relu()


def mlp(x, w, v, bias):
    """Products that take long to be tuned."""
    return torch.nn.functional.gelu(x @ w + bias) @ v


def make_mlp(device):
    sizes = ((4096, 2048), (2048, 3072), (3072, 1024), (3072,))
    return tuple(torch.randn(*size, device=device, dtype=torch.bfloat16) for size in sizes)


def attention(q, k, v):
    """By hand, with the matrix of all pairs."""
    return ((q @ k.transpose(-2, -1)) * q.shape[-1] ** -0.5).softmax(-1) @ v


def sdpa(q, k, v):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v)


def make_attention(device):
    return tuple(torch.randn(4, 16, 2048, 64, device=device, dtype=torch.bfloat16) for _ in "qkv")


class EightLinears(torch.nn.Module):
    """So small that launching takes the time."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(8)))

    def forward(self, x):
        return self.layers(x)


def matmul(a, b):
    return a @ b


def asks_for_a_value(x):
    """Waits for the GPU in the midst of the call."""
    return x * (x.sum().item() > 0)


def refuses_a_graph(x):
    """Waits for the GPU only where that ends a capture."""
    if torch.cuda.is_current_stream_capturing():
        return x * x.sum().item()
    return x * x.sum()


_calls: list = []


def counts_its_calls(x):
    """Its result hangs on what it keeps in Python."""
    _calls.append(1)
    return x + len(_calls)


def grows(x):
    return x.mul_(2)
