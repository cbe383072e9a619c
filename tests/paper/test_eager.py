"""What eager code launches where CUDA goes another way than tensors without memory do."""

import pytest

from kernelcount import runners
from kernelcount.model import Capture, Job, Unmeasured

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("by_rules_alone")]

HEAD = """
import torch.nn.functional as F

@torch.jit.script
def scripted(x):
    return (x + 1).relu() * 2

modules = torch.jit.script(torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh()))

layer = torch.nn.Linear(128, 64)

def make_inputs(n, device):
    return (torch.randn(64, 128, device=device),)

def gradient(x, function):
    x = x.detach().requires_grad_()
    function(x).sum().backward()
    return x.grad

@torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float16)
def doubled(x):
    return x * 2

def cast(x):
    with torch.autocast("cuda"):
        return doubled(x)

def f(x):
    image = x.view(1, 4, 32, 64)
"""


@pytest.fixture
def counted(target):
    """The outcome of a function of these lines, in eager."""

    def run(body):
        path = target(HEAD + "\n".join(f"    {line}" for line in body.split("; ")))
        job = Job(f"{path}:f", device="paper", variants=("eager",))
        (outcome,) = runners.in_process(job, lambda _: None).outcomes.values()
        return outcome

    return run


@pytest.mark.parametrize(
    ("body", "kernels", "copies"),
    [
        ("x[:, 1:3] = 0.", 1, 0),
        ("x[0] = 1", 1, 0),
        ("x[x > 0] = 0.", 2, 0),
        ("x[torch.arange(4, device='cuda')] = 1.", 2, 1),
        ("y = x * 2; y[:, 1:3] += 1", 2, 0),
        ("y = x * 2; y[0] *= 2", 2, 0),
        ("x[torch.tensor([0, 1])]", 1, 1),
        ("x[[0, 1]]", 1, 1),
        ("x[[0, 1], 2:4]", 1, 1),
        ("x[[0, 1], [1, 2]]", 1, 2),
        ("x[[0, 1]] = 0.", 1, 2),
        ("x[torch.arange(64) < 5]", 1, 1),
        ("(x > 0)[[0, 1]] = True", 2, 2),
        ("x.new([1., 2.])", 0, 1),
        ("torch.where(x > 0, x, torch.tensor(0.))", 2, 1),
        ("torch.where(x > 0, x, x.double())", 4, 0),
        ("torch.testing.assert_close(x, x)", 14, 1),
        ("cast(x)", 2, 0),
        ("x.softmax(1)", 1, 0),
        ("x.t().softmax(1)", 2, 0),
        ("x[:, :64].log_softmax(1)", 2, 0),
        ("gradient(x, lambda t: t.softmax(1))", 5, 0),
        ("x.cumsum(1)", 1, 0),
        ("x.t().cumsum(1)", 2, 0),
        ("x.roll(1, 0)", 1, 0),
        ("x.t().roll(1, 0)", 2, 0),
        ("image.roll((-1, -1), (2, 3))", 2, 0),
        ("torch.equal(x, x + 1)", 3, 1),
        ("F.one_hot(torch.arange(64, device='cuda'), 100)", 3, 0),
        ("torch.tensor([x.sum(), x.mean()], device=x.device)", 2, 3),
        ("x.t().cpu()", 0, 1),
        ("torch.ones(64, 128).t().to('cuda')", 0, 1),
        ("torch.ones(64).to('cuda', torch.float16, non_blocking=True)", 1, 1),
        ("torch.ones(64).to('cuda', torch.float16)", 0, 1),
        ("x + torch.tensor(1.0)", 1, 0),
        ("F.max_pool2d(image, 2)", 1, 0),
    ],
)
def test_it_is_counted_as_on_a_gpu(counted, body, kernels, copies):
    outcome = counted(body)
    assert isinstance(outcome, Capture), outcome
    assert not outcome.paper.at_least
    assert (outcome.count("kernel"), outcome.count("copy")) == (kernels, copies)


@pytest.mark.parametrize(
    ("function", "kernels", "copies"),
    [
        ("lambda t: t * 2", 3, 1),
        ("lambda t: t * 2 + 1", 4, 2),
        ("lambda t: t * torch.tensor(2.)", 3, 1),
        ("lambda t: t / torch.ones_like(t)", 5, 1),
        ("lambda t: t * t.sin()", 7, 0),
    ],
)
def test_the_shape_of_a_tangent_that_is_zero_is_no_work_of_the_gpu(
    counted, function, kernels, copies
):
    outcome = counted(f"torch.func.jvp({function}, (x,), (x,))")
    assert (outcome.count("kernel"), outcome.count("copy")) == (kernels, copies)
    assert not outcome.paper.at_least
    assert (outcome.syncs, outcome.notes) == ((), ())


@pytest.mark.parametrize(
    ("body", "least"),
    [
        ("F.max_pool2d(image.transpose(2, 3), 2)", 1),
        ("F.interpolate(image, scale_factor=1)", 0),
        ("torch.cat([x])", 0),
        ("torch.stack([x])", 0),
        ("torch.cat([x.view(1, 1, 1, 64, 128)] * 2)", 0),
        ("x.repeat(1, 1)", 0),
        ("gradient(x, lambda t: t.cumprod(1))", 3),
        ("gradient(x, lambda t: t.prod(1))", 3),
        ("scripted(x) + 1", 1),  # its fuser may make one kernel of all that is in it
        ("modules(x) + 1", 1),
        ("x.repeat_interleave(torch.ones(64, device='cuda').long(), 0)", 7),
    ],
)
def test_where_that_cannot_be_known_it_is_a_lower_bound_and_not_above(counted, body, least):
    outcome = counted(body)
    assert isinstance(outcome, Capture), outcome
    assert outcome.paper.at_least
    assert outcome.count("kernel") == least


@pytest.mark.parametrize(
    "body", ["x + torch.ones(128)", "layer(x)", "torch.cat([x, torch.ones(64, 128)])"]
)
def test_tensors_of_two_devices_do_not_meet(counted, body):
    outcome = counted(body)
    assert isinstance(outcome, Unmeasured)
    assert (outcome.code, "Expected all tensors to be on the same device" in outcome.reason) == (
        2,
        True,
    )
