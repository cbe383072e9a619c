"""Functions whose operations are counted, each with the number that it has on a CPU."""

import torch
import torch.nn.functional as F

_linear = torch.nn.Linear(64, 64)
_mlp = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 64))
_conv = torch.nn.Conv2d(3, 8, 3)
_norm = torch.nn.BatchNorm2d(8).eval()
_embedding = torch.nn.Embedding(64, 16)
_layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True).eval()


def add_relu(x):
    return (x + 1).relu()


def softmax(x):
    return torch.softmax(x, -1)


def softmax_by_hand(x):
    e = torch.exp(x - x.amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


def layer_norm_gelu(x):
    return F.gelu(F.layer_norm(x, (64,)))


def mlp(x):
    return _mlp(x)


def mlp_forward_and_backward(x):
    _mlp.zero_grad()
    _mlp(x).relu().sum().backward()


def two_sums(x):
    return x.sum() + (x * 2).sum()


def attention(x):
    q = x.view(1, 4, 16, 64)
    return F.scaled_dot_product_attention(q, q, q)


def attention_by_hand(x):
    q = x.view(1, 4, 16, 64)
    return torch.softmax(q @ q.transpose(-1, -2) / 8.0, -1) @ q


def encoder_layer(x):
    with torch.no_grad():
        return _layer(x.view(1, 64, 64))


def mean_of_list(x):
    return sum(t.mean() for t in x.chunk(2)) / 2


def rms_norm_and_rotate(x):
    y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
    a, b = y.chunk(2, dim=-1)
    return y * 0.5 + torch.cat((-b, a), dim=-1) * 0.25


def conv_bn_relu(x):
    return F.relu(_norm(_conv(x.view(1, 1, 64, 64).expand(1, 3, 64, 64))))


def cross_entropy(x):
    return F.cross_entropy(x, x.argmax(-1))


def contiguous_transpose(x):
    return x.t().contiguous()


def in_place(x):
    return x.add_(1).relu_()


def masked_by_arange(x):
    return torch.where(torch.arange(64) < 32, x, 0.0)


def embedding(x):
    return _embedding(x[0].abs().long())


def dropout(x):
    return F.dropout(x, 0.5)


def many_at_once(x):
    return torch._foreach_add(list(x.chunk(4)), 1.0)


def item(x):
    return x.sum().item()


def half_and_back(x):
    return x.half().float()


def einsum(x):
    return torch.einsum("ij,jk->ik", x, x)


def views_only(x):
    return x.t().view(64, 64)[::2].unsqueeze(0).expand(2, 32, 64)


def largest(x):
    return x.max()


def larger(x):
    return torch.max(x, 1 - x)


def largest_in_rows(x):
    return x.max(1).values


def where_with_number(x):
    return torch.where(x > 0, x, 1.0)


def where_alone(x):
    return torch.where(x > 0)


def repeated(x):
    return x.repeat_interleave(2, 0)


def std(x):
    return x.std()


def silu_forward_and_backward(x):
    y = x.detach().requires_grad_()
    F.silu(y).sum().backward()


def resized(x):
    return F.interpolate(x.view(1, 1, 64, 64), scale_factor=2.0, mode="bilinear")


def under_a_record_function(x):
    with torch.profiler.record_function("my::region"):
        return x + 1


def make_inputs(device="cpu"):
    return (torch.randn(64, 64, device=device),), {}


EAGER = {
    "add_relu": 2, "softmax": 1, "softmax_by_hand": 5, "layer_norm_gelu": 2, "mlp": 3,
    "mlp_forward_and_backward": 13, "two_sums": 4, "attention": 1, "attention_by_hand": 4,
    "encoder_layer": 1, "mean_of_list": 5, "rms_norm_and_rotate": 10, "conv_bn_relu": 3,
    "cross_entropy": 3, "contiguous_transpose": 1, "in_place": 2, "masked_by_arange": 4,
    "embedding": 3, "dropout": 3, "many_at_once": 1, "item": 1, "half_and_back": 2, "einsum": 1,
    "views_only": 0, "largest": 1, "larger": 2, "largest_in_rows": 1, "where_with_number": 3,
    "where_alone": 2, "repeated": 1, "std": 1, "silu_forward_and_backward": 4, "resized": 1,
    "under_a_record_function": 1,
}  # fmt: skip
"""ATen operations that do work, in one steady call."""

COMPILED = {
    "add_relu": (0, 1), "mlp": (2, 1), "attention_by_hand": (1, 0), "dropout": (1, 1),
    "einsum": (1, 0), "views_only": (0, 0), "where_alone": (1, 1),
}  # fmt: skip
"""ATen operations, and kernels that Inductor generates, of the compiled function."""
