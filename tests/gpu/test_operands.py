"""Whether a GPU refuses what paper refuses, and runs what paper runs."""

import pytest
from paper import test_operands as on_paper

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def a():
    """Makes tensors on the GPU."""
    import torch

    if not torch.cuda.is_available():
        pytest.skip("needs an NVIDIA GPU")
    yield on_paper.Maker("cuda")
    torch.cuda.synchronize()


@pytest.mark.parametrize("name", list(on_paper.REFUSED_EVERYWHERE))
def test_what_paper_refuses_is_refused(a, name):
    with pytest.raises((RuntimeError, ValueError, TypeError, IndexError)):
        on_paper.REFUSED_EVERYWHERE[name](a)


@pytest.mark.parametrize("name", list(on_paper.REFUSED_BY_THE_GPU))
def test_what_the_gpu_alone_refuses_is_refused(a, name):
    with pytest.raises((RuntimeError, ValueError, TypeError)):
        on_paper.REFUSED_BY_THE_GPU[name](a)


@pytest.mark.parametrize("name", list(on_paper.MIXED_FREELY))
def test_what_paper_takes_runs(a, name):
    on_paper.MIXED_FREELY[name](a)
