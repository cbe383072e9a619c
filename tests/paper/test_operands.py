"""Calls that cannot run on a GPU raise on paper, in torch's words or near them."""

import pytest
import torch
import torch.nn.functional as F

from kernelcount import runners
from kernelcount.model import Capture, Job, Unmeasured
from kernelcount.paper import operands
from kernelcount.paper.gpu import of_card

pytestmark = pytest.mark.filterwarnings("ignore")

HALF, BF16, F64 = torch.float16, torch.bfloat16, torch.float64


class Maker:
    """Tensors on one device: `a.f(2, 3)` of floats, of another dtype `a.f(2, 3, dtype=...)`."""

    def __init__(self, device):
        self.device = device

    def f(self, *shape, dtype=torch.float32):
        return torch.ones(shape, device=self.device).to(dtype)

    def index(self, *shape, dtype=torch.int64):
        return torch.zeros(shape, device=self.device, dtype=dtype)

    def layer(self, kind, *sizes):
        return kind(*sizes).to(self.device)


@pytest.fixture
def on_paper():
    """Calls a function with a maker of GPU tensors."""

    def run(call):
        with of_card(None).prepare():
            return call(Maker("cuda"))

    return run


def put(x, index, value):
    x[index] = value


REFUSED_EVERYWHERE = {
    "linear": lambda a: F.linear(a.f(4, 8, dtype=BF16), a.f(3, 8)),
    "linear of three dimensions": lambda a: F.linear(a.f(2, 4, 8, dtype=BF16), a.f(3, 8), a.f(3)),
    "linear with a bias": lambda a: F.linear(a.f(4, 8, dtype=BF16), a.f(3, 8, dtype=BF16), a.f(3)),
    "matmul": lambda a: torch.matmul(a.f(4, 8, dtype=HALF), a.f(8, 4)),
    "matmul of whole numbers": lambda a: torch.matmul(a.f(4, 8), a.index(8, 4)),
    "mv": lambda a: torch.mv(a.f(4, 8), a.f(8, dtype=F64)),
    "dot": lambda a: torch.dot(a.f(8), a.f(8, dtype=F64)),
    "addmm": lambda a: torch.addmm(a.f(3), a.f(4, 8, dtype=BF16), a.f(8, 3)),
    "addmm_": lambda a: a.f(4, 4).addmm_(a.f(4, 4, dtype=BF16), a.f(4, 4, dtype=BF16)),
    "bmm": lambda a: torch.bmm(a.f(2, 4, 8, dtype=BF16), a.f(2, 8, 3)),
    "baddbmm": lambda a: torch.baddbmm(
        a.f(2, 4, 3), a.f(2, 4, 8, dtype=BF16), a.f(2, 8, 3, dtype=BF16)
    ),
    "einsum": lambda a: torch.einsum("ij,jk->ik", a.f(4, 8, dtype=BF16), a.f(8, 3)),
    "conv1d": lambda a: F.conv1d(a.f(1, 2, 8, dtype=BF16), a.f(3, 2, 3)),
    "conv2d": lambda a: F.conv2d(a.f(1, 2, 8, 8, dtype=HALF), a.f(3, 2, 3, 3)),
    "conv2d with a bias": lambda a: F.conv2d(
        a.f(1, 2, 8, 8, dtype=BF16), a.f(3, 2, 3, 3, dtype=BF16), a.f(3)
    ),
    "conv_transpose2d": lambda a: F.conv_transpose2d(a.f(1, 2, 8, 8, dtype=BF16), a.f(2, 3, 3, 3)),
    "attention": lambda a: F.scaled_dot_product_attention(
        a.f(1, 2, 8, 16, dtype=BF16), a.f(1, 2, 8, 16), a.f(1, 2, 8, 16, dtype=BF16)
    ),
    "a mask of whole numbers": lambda a: F.scaled_dot_product_attention(
        a.f(1, 2, 8, 16), a.f(1, 2, 8, 16), a.f(1, 2, 8, 16), a.index(8, 8)
    ),
    "lstm": lambda a: a.layer(torch.nn.LSTM, 8, 4)(
        a.f(3, 2, 8), (a.f(1, 2, 4, dtype=BF16), a.f(1, 2, 4, dtype=BF16))
    ),
    "lstm cell": lambda a: a.layer(torch.nn.LSTMCell, 8, 4)(a.f(2, 8, dtype=BF16)),
    "batch norm": lambda a: F.batch_norm(
        a.f(4, 8), a.f(8, dtype=BF16), a.f(8, dtype=BF16), a.f(8, dtype=BF16), None, True
    ),
    "layer norm": lambda a: F.layer_norm(a.f(4, 8), (8,), a.f(8, dtype=BF16)),
    "cross entropy with weights": lambda a: F.cross_entropy(
        a.f(4, 5, dtype=BF16), a.index(4), weight=a.f(5)
    ),
    "cross entropy of int32": lambda a: F.cross_entropy(a.f(4, 5), a.index(4, dtype=torch.int32)),
    "binary cross entropy": lambda a: F.binary_cross_entropy(a.f(4), a.f(4, dtype=F64)),
    "index_put": lambda a: put(a.f(4, 5), a.index(3), a.f(3, 5, dtype=BF16)),
    "index_add": lambda a: a.f(4, 5).index_add_(0, a.index(3), a.f(3, 5, dtype=BF16)),
    "index_copy": lambda a: a.f(4, 5).index_copy_(0, a.index(3), a.f(3, 5, dtype=BF16)),
    "index_select": lambda a: a.f(4, 5).index_select(0, a.f(3)),
    "masked_fill": lambda a: a.f(4).masked_fill_(a.index(4), 0.0),
    "embedding_bag": lambda a: F.embedding_bag(
        a.index(2, 3), a.f(4, 5), mode="sum", per_sample_weights=a.f(2, 3, dtype=BF16)
    ),
    "cdist": lambda a: torch.cdist(a.f(4, 8), a.f(4, 8, dtype=F64)),
    "cross": lambda a: torch.linalg.cross(a.f(4, 3), a.f(4, 3, dtype=F64)),
    "grid_sample": lambda a: F.grid_sample(a.f(1, 2, 4, 4, dtype=BF16), a.f(1, 4, 4, 2)),
    "complex": lambda a: torch.complex(a.f(4), a.f(4, dtype=F64)),
    "softmax of whole numbers": lambda a: torch.softmax(a.index(4, 5), 1),
    "gelu of whole numbers": lambda a: F.gelu(a.index(4, 5)),
    "var of whole numbers": lambda a: a.index(4, 5).var(),
    "and of floats": lambda a: a.f(4) & a.f(4),
    "relu of booleans": lambda a: F.relu(a.index(4, dtype=torch.bool)),
    "order of complex numbers": lambda a: a.f(4, dtype=torch.complex64) < 0,
    "eigenvalues of halves": lambda a: torch.linalg.eigh(a.f(4, 4, dtype=BF16)),
    "shapes": lambda a: torch.matmul(a.f(4, 8), a.f(4, 8)),
    "shapes of a sum": lambda a: a.f(4) + a.f(5),
    "shapes of a convolution": lambda a: F.conv2d(a.f(1, 3, 8, 8), a.f(3, 2, 3, 3)),
}

REFUSED_BY_THE_GPU = {
    "layer norm": lambda a: F.layer_norm(a.f(4, 8, dtype=BF16), (8,), a.f(8), a.f(8)),
    "group norm": lambda a: F.group_norm(a.f(2, 8, 4, dtype=BF16), 2, a.f(8), a.f(8)),
    "a product of whole numbers": lambda a: a.index(4, 4) @ a.index(4, 4),
    "a pool of whole numbers": lambda a: F.avg_pool2d(a.index(1, 4, 4), 2),
}

MIXED_FREELY = {
    "add": lambda a: a.f(4, dtype=BF16) + a.f(4),
    "addcmul": lambda a: torch.addcmul(a.f(4), a.f(4, dtype=BF16), a.f(4)),
    "where": lambda a: torch.where(a.f(4) > 0, a.f(4), a.f(4, dtype=BF16)),
    "cat": lambda a: torch.cat([a.f(4), a.f(4, dtype=BF16)]),
    "mse_loss": lambda a: F.mse_loss(a.f(4), a.f(4, dtype=F64)),
    "rms_norm": lambda a: F.rms_norm(a.f(4, 8, dtype=BF16), (8,), a.f(8)),
    "batch norm": lambda a: F.batch_norm(
        a.f(4, 8, dtype=BF16), a.f(8), a.f(8), a.f(8), a.f(8), True
    ),
    "a number where a mask says": lambda a: put(a.f(4, dtype=BF16), a.f(4) > 0, 1.0),
    "a slice": lambda a: put(a.f(4, 5), slice(0, 2), a.f(2, 5, dtype=BF16)),
    "an attention mask of floats": lambda a: F.scaled_dot_product_attention(
        *(a.f(1, 2, 8, 16, dtype=BF16) for _ in range(3)), a.f(8, 8)
    ),
    "remainder of booleans": lambda a: torch.remainder(a.index(4, dtype=torch.bool), 2),
    "lengths": lambda a: F.ctc_loss(
        a.f(9, 2, 5), a.index(2, 3) + 1, torch.tensor([9, 9]), torch.tensor([3, 3])
    ),
}


@pytest.mark.parametrize("name", REFUSED_EVERYWHERE)
def test_what_the_cpu_refuses_is_refused_on_paper(on_paper, name):
    call = REFUSED_EVERYWHERE[name]
    with pytest.raises(RuntimeError):
        call(Maker("cpu"))
    with pytest.raises(RuntimeError):
        on_paper(call)


@pytest.mark.parametrize("name", REFUSED_BY_THE_GPU)
def test_what_a_gpu_alone_refuses_is_refused_on_paper(on_paper, name):
    REFUSED_BY_THE_GPU[name](Maker("cpu"))
    with pytest.raises(RuntimeError):
        on_paper(REFUSED_BY_THE_GPU[name])


@pytest.mark.parametrize("name", MIXED_FREELY)
def test_what_takes_several_dtypes_runs(on_paper, name):
    MIXED_FREELY[name](Maker("cpu"))
    on_paper(MIXED_FREELY[name])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            "linear",
            "mat1 and mat2 to have the same dtype, but got: c10::BFloat16 != float",
        ),
        (
            "linear with a bias",
            "self and mat2 must have the same dtype, but got Float and BFloat",
        ),
        ("conv1d", "Input type (CUDABFloat16Type) and weight type (torch.cuda.FloatTensor) should"),
        ("conv2d with a bias", "and bias type"),
        ("attention", "Expected query, key, and value to have the same dtype, but got query.dtype"),
        ("index_put", "got Float for the destination and BFloat16 for the source."),
        ("binary cross entropy", "Found dtype Double but expected Float"),
        ("gelu of whole numbers", "\"gelu_cuda\" not implemented for 'Long'"),
    ],
)
def test_the_error_has_torchs_words(on_paper, call, words):
    with pytest.raises(RuntimeError) as raised:
        on_paper(REFUSED_EVERYWHERE[call])
    assert words in str(raised.value)


@pytest.mark.parametrize(
    "call",
    [
        lambda x, host: torch.sort(x)[0] + host,
        lambda x, host: x.index_select(0, host.long()),
        torch.dot,
        lambda x, host: x.scatter_(0, host.long(), x),
        lambda x, host: torch.stack([x, host]),
        lambda x, host: F.embedding(host.long(), x.view(2, 2)),
        lambda x, host: F.scaled_dot_product_attention(*(t.view(1, 4) for t in (x, x, host))),
        torch.equal,
    ],
)
def test_tensors_of_two_devices_are_refused(on_paper, call):
    with pytest.raises(RuntimeError, match="same device"):
        on_paper(lambda a: call(a.f(4), torch.ones(4)))


@pytest.mark.parametrize(
    "call",
    [
        lambda x, host: x.copy_(host),
        lambda x, host: x[host.long()],
        lambda x, host: put(x, host.long(), x),
        lambda x, _: x + torch.tensor(2.0),
        torch.slice_scatter,
        lambda x, host: torch._foreach_copy_([x], [host]),
        lambda x, host: torch.nn.utils.rnn.pack_padded_sequence(x.view(1, 4), host[:4].long()),
    ],
)
def test_what_may_come_from_the_host_is_taken(on_paper, call):
    on_paper(lambda a: call(a.f(4), torch.ones(4)))


def test_autocast_casts_before_the_check(on_paper):
    def call(a):
        with torch.autocast("cuda", dtype=BF16):
            hidden = F.linear(a.f(4, 8, dtype=BF16), a.f(3, 8), a.f(3))
            return F.layer_norm(hidden, (3,), a.f(3))

    assert on_paper(call).dtype == torch.float32


def test_every_op_of_the_tables_is_one_of_torchs():
    names = {
        *operands._ALIKE, *operands._BATCH_NORM, *operands._MASKS, *operands._INDICES,
        *operands._FLOATS, *operands._FLOATS_OR_BYTES, *operands._FLOATS_OR_COMPLEX,
        *operands._WHOLE, *operands._NO_BOOLEANS, *operands._NO_COMPLEX, *operands._NO_HALVES,
        *operands._ANY_DEVICE,
    }  # fmt: skip
    aten = torch.ops.aten
    assert {n for n in names if not (hasattr(aten, n) or hasattr(aten, f"{n}_"))} == set()


def test_every_argument_of_the_tables_is_one_of_its_ops():
    for name, names in operands._ALIKE.items():
        overloads = [getattr(torch.ops.aten, name, None), getattr(torch.ops.aten, f"{name}_", None)]
        for packet in (p for p in overloads if p is not None):
            schemas = [getattr(packet, o)._schema for o in packet.overloads()]
            arguments = {a.name for schema in schemas for a in schema.arguments}
            assert set(names) <= arguments, name


@pytest.mark.parametrize("variant", ["eager", "compile"])
def test_it_ends_as_the_functions_own_exception(target, variant):
    path = target(
        "weight = torch.randn(3, 64, device='cuda')\n"
        "def f(x):\n    return torch.nn.functional.linear(x.bfloat16(), weight)\n"
    )
    job = Job(f"{path}:f", device="paper", sizes=(64,), variants=(variant,))
    (outcome,) = runners.in_process(job, lambda _: None).outcomes.values()
    assert isinstance(outcome, Unmeasured)
    assert "mat2 to have the same dtype" in outcome.reason
    assert variant == "compile" or outcome.code == 2


def test_a_call_that_raises_and_is_caught_costs_nothing(target):
    path = target(
        "weight = torch.randn(3, 64, device='cuda')\n"
        "def f(x):\n"
        "    try:\n        return torch.nn.functional.linear(x.bfloat16(), weight)\n"
        "    except RuntimeError:\n        return x + 1\n"
    )
    job = Job(f"{path}:f", device="paper", sizes=(64,), variants=("eager",))
    (outcome,) = runners.in_process(job, lambda _: None).outcomes.values()
    assert isinstance(outcome, Capture)
    assert outcome.count("kernel") == 2
