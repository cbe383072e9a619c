"""Functions whose kernels are mapped to these lines; tests/gpu/test_lines.py runs them, too."""

import torch
from torch import nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F


def add_relu(a, b):
    return (a + b).relu()


def ln_bias_gelu(x, bias):
    y = F.layer_norm(x, x.shape[-1:])
    y = y + bias
    return F.gelu(y)


def make_ln_bias_gelu(n, device):
    return torch.randn(n, 1024, device=device), torch.randn(1024, device=device)


class RMSNorm(nn.Module):
    def __init__(self, width=1024):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return x * scale * self.weight


def make_RMSNorm(n, device):
    return (torch.randn(n, 1024, device=device),)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        parts = self.qkv(x).chunk(3, -1)
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in parts)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, width=256, heads=4):
        super().__init__()
        self.before = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.after = nn.LayerNorm(width)
        self.widen = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(self.before(x))
        return x + self.narrow(F.gelu(self.widen(self.after(x))))


def make_Block(n, device):
    return (torch.randn(2, n, 256, device=device),)


LLAMA = None


def llama(ids):
    return LLAMA(ids).logits


def make_llama(n, device, layers=1):
    """A small one with random weights."""
    global LLAMA
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        hidden_size=256, intermediate_size=512, num_hidden_layers=layers, num_attention_heads=4,
        num_key_value_heads=2, vocab_size=1000, use_cache=False,
    )  # fmt: skip
    LLAMA = LlamaForCausalLM(config).to(device)
    return (torch.randint(0, 1000, (2, n), device=device),)


llama_of_four = llama


def make_llama_of_four(n, device):
    return make_llama(n, device, 4)


MODEL = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))
OPTIMIZER = torch.optim.AdamW(MODEL.parameters())


def train(x):
    loss = MODEL(x).square().mean()
    loss.backward()
    OPTIMIZER.step()
    OPTIMIZER.zero_grad()


def make_train(n, device):
    global OPTIMIZER
    MODEL.to(device)
    OPTIMIZER = torch.optim.AdamW(MODEL.parameters())
    return (torch.randn(n, 64, device=device),)


def breaks(a, b):
    c = (a + b).relu()
    torch._dynamo.graph_break()
    return (c * a).sigmoid()


def naive_attn(q, k, v):
    scores = (q @ k.transpose(-1, -2)) / (q.shape[-1] ** 0.5)
    weights = torch.softmax(scores, -1)
    return weights @ v


def make_naive_attn(device):
    return tuple(torch.randn(2, 8, 1024, 64, device=device, dtype=torch.bfloat16) for _ in range(3))


def mean_list(*ts):
    total = 0
    for x in ts:
        mean = x.mean()
        total = total + mean
    return total / len(ts)


def make_mean_list(device):
    return tuple(torch.randn(256, device=device) for _ in range(100))


class Squared(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * 2 * x


class Waved(torch.autograd.Function):
    @staticmethod
    def forward(x, y):
        return x.exp() * y, x.sin()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs, *output)

    @staticmethod
    @once_differentiable
    def backward(ctx, one, other):
        x, _, exp, _ = ctx.saved_tensors
        return one * exp + other * x.cos(), one.neg()


class Squares(nn.Module):
    def forward(self, x):
        return Squared.apply(x) + 1


class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(Squares(), Squares())

    def forward(self, x):
        one, other = Waved.apply(self.inner(x), x * 2)
        return one - other


def own_twice(x):
    x = x.detach().requires_grad_()
    (once,) = torch.autograd.grad(Squared.apply(x).sum(), x, create_graph=True)
    (twice,) = torch.autograd.grad(once.sum(), x)
    return twice


def hooked(x):
    w = x.detach().requires_grad_()
    w.register_hook(lambda g: g * 3)
    w.tanh().sum().backward()
    return w.grad


def hooked_inside(x):
    y = (x * 2).cos()
    y.register_hook(lambda g: g.clamp(-1, 1))
    return y.sin()


class Watched(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Tanh()
        self.inner.register_full_backward_hook(self.after)
        self.inner.register_full_backward_pre_hook(self.before)

    def before(self, module, gradients):
        return tuple(g.exp() for g in gradients)

    def after(self, module, gradients, _):
        return tuple(g.cos() for g in gradients)

    def forward(self, x):
        return self.inner(x * 2) + 1


def puts(x):
    x[2] = 5.0
    return x + 1
