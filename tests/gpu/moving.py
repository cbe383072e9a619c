"""Functions over arrays far larger than an L2 cache, whose bytes an H200 has counted.

`CASES` names each with what it is given; `counted_bytes.py` has the counters read, and the figures
stand in ``tests/data/h200/dram.json``.
"""

import torch
import torch.nn.functional as F


def add_relu(a, b):
    return (a + b).relu()


def scaled(x):
    return x * 2


def every_other_scaled(x):
    return x[:, ::2] * 2


def gelu(x):
    return F.gelu(x)


def dropped(x):
    return F.dropout(x, 0.5)


def shifted(x, b):
    return x + b


def positive(x):
    return torch.where(x > 0, x, 0.0)


def masked(x, m):
    return x.masked_fill_(m, 0.0)


def halved(x):
    return x.to(torch.bfloat16)


def joined(a, b):
    return torch.cat((a, b))


def transposed(x):
    return x.t().contiguous()


def flipped(x):
    return x.flip(1)


def rolled(x):
    return x.roll(1, 1)


def windows(x):
    return x.unfold(0, 4, 1).sum(-1)


def total(x):
    return x.sum()


def row_sums(x):
    return x.sum(-1)


def column_sums(x):
    return x.sum(0)


def row_variances(x):
    return torch.var_mean(x, -1)


def deviation(x):
    return x.std()


def running_sums(x):
    return x.cumsum(-1)


def row_maxima(x):
    return x.max(-1).values


def largest_of_rows(x):
    return x.argmax(-1)


def eight_largest(x):
    return x.topk(8, -1).values


def sorted_rows(x):
    return x.sort(-1).values


def looked_up(table, index):
    return F.embedding(index, table)


def some_rows(table, index):
    return table[index]


def gathered(x, index):
    return x.gather(1, index)


def softmax(x):
    return torch.softmax(x, -1)


def log_softmax(x):
    return torch.log_softmax(x, -1)


def softmax_gradient(grad, y):
    return torch.ops.aten._softmax_backward_data(grad, y, -1, torch.float32)


def cross_entropy(x, target):
    return F.cross_entropy(x, target)


def layer_norm(x):
    return F.layer_norm(x, x.shape[-1:])


def rms_norm(x):
    return F.rms_norm(x, x.shape[-1:])


def ln_bias_gelu(x, weight, shift, bias):
    return F.gelu(F.layer_norm(x, x.shape[-1:], weight, shift) + bias)


def rms_norm_by_hand(x, weight):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * weight


def group_norm(x):
    return F.group_norm(x, 32)


def batch_norm(x, mean, variance):
    return F.batch_norm(x, mean, variance)


def trained_batch_norm(x):
    return F.batch_norm(x, None, None, training=True)


def convolved(x, w):
    return F.conv2d(x, w, padding=1)


def pooled(x):
    return F.max_pool2d(x, 2)


def enlarged(x):
    return F.interpolate(x, scale_factor=2)


def product(a, b):
    return a @ b


def linear_gelu(x, w, b):
    return F.gelu(F.linear(x, w, b))


def attention(q):
    return F.scaled_dot_product_attention(q, q, q)


def appended(cache, key):
    cache[:, :, 5:6].copy_(key)
    return cache.sum(-1)


_SQUARE, _IMAGE = "f32[16384,4096]", "f32[64,64,128,128]"
_WIDTHS = [(65536, 1024), (32768, 2048), (16384, 4096), (8192, 8192), (4096, 16384), (1024, 65536)]

CASES: list[tuple[str, tuple[str, ...]]] = [
    ("add_relu", ("f32[100000000]", "f32[100000000]")),
    ("rms_norm_by_hand", (_SQUARE, "f32[4096]")),
    *(
        ("ln_bias_gelu", (f"f32[{rows},{width}]", *[f"f32[{width}]"] * 3))
        for rows, width in ((262144, 1024), (131072, 2048), (65536, 4096), (8192, 8192))
    ),
    ("softmax", ("f32[100000,1000]",)),
    *(("layer_norm", (f"f32[{rows},{width}]",)) for rows, width in _WIDTHS),
    ("layer_norm", ("f32[65536,1001]",)),
    *(("layer_norm", (f"bf16[{r},{w}]",)) for r, w in ((32768, 4096), (16384, 8192))),
    *(("rms_norm", (f"f32[{rows},{width}]",)) for rows, width in _WIDTHS),
    *(("softmax", (f"f32[{rows},{width}]",)) for rows, width in _WIDTHS),
    *(("log_softmax", (f"f32[{rows},{width}]",)) for rows, width in _WIDTHS),
    *(("softmax_gradient", (s, s)) for s in (_SQUARE, "f32[2048,32768]")),
    *(
        ("cross_entropy", (f"f32[{rows},{words}]", f"i64[{rows}]<{words}"))
        for rows, words in ((2048, 50304), (1024, 128256))
    ),
    *(
        (name, (_SQUARE,))
        for name in (
            "scaled", "gelu", "dropped", "positive", "halved", "flipped", "rolled", "total",
            "row_sums", "column_sums", "row_variances", "deviation", "running_sums", "row_maxima",
            "largest_of_rows", "eight_largest", "sorted_rows",
        )
    ),
    ("shifted", (_SQUARE, "f32[4096]")),
    ("masked", (_SQUARE, "bool[16384,4096]")),
    ("joined", ("f32[8192,4096]", "f32[8192,4096]")),
    ("transposed", ("f32[8192,8192]",)),
    ("windows", ("f32[67108864]",)),
    ("every_other_scaled", ("f32[16384,8192]",)),
    ("looked_up", ("f32[50304,1024]", "i64[65536]<50304")),
    ("some_rows", ("f32[1000000,64]", "i64[500000]<1000000")),
    ("gathered", (_SQUARE, "i64[16384,64]<4096")),
    ("group_norm", (_IMAGE,)),
    ("batch_norm", (_IMAGE, "f32[64]", "f32[64]")),
    ("trained_batch_norm", (_IMAGE,)),
    ("convolved", ("f32[32,64,128,128]", "f32[64,64,3,3]")),
    ("pooled", (_IMAGE,)),
    ("enlarged", ("f32[32,64,128,128]",)),
    ("product", ("f32[4096,4096]", "f32[4096,4096]")),
    ("product", ("bf16[8192,8192]", "bf16[8192,8192]")),
    ("product", ("f32[1048576,64]", "f32[64,64]")),
    ("linear_gelu", ("bf16[131072,512]", "bf16[512,512]", "bf16[512]")),
    ("attention", ("bf16[16,16,4096,64]",)),
    ("appended", ("f32[8,32,2048,128]", "f32[8,32,1,128]")),
]  # fmt: skip
"""Functions by name, with their arguments as ``--input`` has them."""
