"""Functions over many kinds of op, to hold paper against a GPU.

Each takes what ``make_NAME`` gives, or `make_inputs`: an array of ``n * n`` floats as a square.
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


def make_image(device="cuda"):
    return (torch.randn(8, 16, 64, 64, device=device), torch.randn(32, 16, 3, 3, device=device))


def make_convolved(device="cuda"):
    return make_image(device)


def convolved(x, weight):
    return F.conv2d(x, weight, padding=1).relu()


def make_normalised_batch(device="cuda"):
    return (torch.randn(8, 16, 64, 64, device=device),)


def normalised_batch(x):
    return F.batch_norm(x, None, None, training=True).relu()


def make_normalised_groups(device="cuda"):
    return make_normalised_batch(device)


def normalised_groups(x):
    return F.silu(F.group_norm(x, 4))


def make_averaged(device="cuda"):
    return make_normalised_batch(device)


def averaged(x):
    return F.adaptive_avg_pool2d(F.avg_pool2d(x, 2), 1).flatten(1)


def make_attended(device="cuda"):
    shape = (2, 8, 512, 64)
    return tuple(torch.randn(shape, device=device, dtype=torch.bfloat16) for _ in range(3))


def attended(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def make_attended_by_hand(device="cuda"):
    return make_attended(device)


def attended_by_hand(q, k, v):
    return ((q @ k.transpose(-2, -1)) * 0.125).softmax(-1) @ v


def outer_sum(x):
    return torch.einsum("i,j->ij", x[0], x[1]) + x


def scattered(x):
    index = torch.arange(x.shape[0], device=x.device)[:, None].expand_as(x)
    return torch.zeros_like(x).scatter_add(0, index, x)


def put(x):
    rows = torch.arange(0, 1024, 4, device=x.device)
    return x.index_put((rows,), x[rows] * 2)


def chosen(x):
    return x[x > 1]


def clipped_norm(x):
    return x * (1 / x.norm()).clamp(max=1)


def make_gradient(device="cuda"):
    return (torch.randn(256, 1024, device=device, requires_grad=True),)


def gradient(x):
    (grad,) = torch.autograd.grad((x.sigmoid() * x).sum(), x)
    return grad


def make_trained(device="cuda"):
    model = torch.nn.Sequential(
        torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 10)
    ).to(device)
    return model, torch.optim.SGD(model.parameters(), lr=0.1), torch.randn(64, 256, device=device)


def trained(model, optimizer, x):
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()


def make_adam(device="cuda"):
    model, _, x = make_trained(device)
    return model, torch.optim.Adam(model.parameters()), x


def adam(model, optimizer, x):
    trained(model, optimizer, x)
