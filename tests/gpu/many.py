"""Forty functions over many kinds of op, to hold paper against a GPU.

Each takes what `make_inputs` gives: an array of ``n * n`` floats as a square.
"""

import torch
import torch.nn.functional as F


def make_inputs(n=1024, device="cuda"):
    return (torch.randn(n, n, device=device),)


def square(x):
    return x * x


def scale_shift(x):
    return x * 2 + 1


def polynomial(x):
    return x**3 + 2 * x**2 - x


def gelu_tanh(x):
    return F.gelu(x, approximate="tanh")


def silu_gate(x):
    return F.silu(x[:, :512]) * x[:, 512:]


def clamp_abs(x):
    return x.clamp(-1, 1).abs()


def where_zero(x):
    return torch.where(x > 0, x, torch.zeros_like(x))


def masked_fill(x):
    return x.masked_fill(x > 0, 0.0)


def to_half(x):
    return x.half().float()


def bf16_chain(x):
    return (x.bfloat16() * 2).sigmoid().float()


def row_sum(x):
    return x.sum(-1)


def total(x):
    return x.sum()


def mean_std(x):
    return (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-5)


def log_softmax(x):
    return F.log_softmax(x, -1)


def row_max(x):
    return x.max(-1).values


def argmax(x):
    return x.argmax(-1)


def norm(x):
    return x / x.norm(dim=-1, keepdim=True)


def any_negative(x):
    return (x < 0).any(-1)


def cumulative(x):
    return x.cumsum(-1)


def cumulative_mask(x):
    return (x > 0).cumsum(-1)


def transposed(x):
    return x.t().contiguous()


def permuted(x):
    return x.view(32, 32, 1024).permute(2, 0, 1).contiguous()


def concatenated(x):
    return torch.cat([x, x * 2], 0)


def stacked(x):
    return torch.stack([x, x + 1])


def split_sum(x):
    return sum(x.chunk(4, -1))


def rolled(x):
    return x.roll(1, 0) + x.flip(0)


def padded(x):
    return F.pad(x, (1, 1))


def triangle(x):
    return x.tril() + x.triu(1)


def gathered(x):
    return x.gather(-1, torch.zeros_like(x, dtype=torch.long))


def looked_up(x):
    return F.embedding(torch.arange(64, device=x.device), x)


def by_index(x):
    return x[torch.arange(0, 1024, 2, device=x.device)]


def rms(x):
    return F.rms_norm(x, (x.shape[-1],))


def layer_norm(x):
    return F.layer_norm(x, (x.shape[-1],)) * 2


def cross_entropy(x):
    return F.cross_entropy(x, torch.zeros_like(x[:, 0], dtype=torch.long))


def mse(x):
    return F.mse_loss(x, x * 2)


def dropped(x):
    return F.dropout(x, 0.1, True) + x


def product(x):
    return x @ x


def linear_relu(x):
    return F.linear(x, x, x[0]).relu()


def pooled(x):
    return F.max_pool2d(x[None, None], 2)


def upsampled(x):
    return F.interpolate(x[None, None], scale_factor=2)


def noise(x):
    return x + torch.randn_like(x)


def in_place(x):
    return x.mul_(2).add_(1)


def sorted_rows(x):
    return x.sort(-1).values


def top_ten(x):
    return x.topk(10).values
