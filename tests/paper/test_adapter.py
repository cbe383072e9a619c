"""The private names of torch: each must be there, and a missing one must be told."""

import pytest

from kernelcount.errors import NotMeasuredError
from kernelcount.paper import adapter

# Importing Inductor warns of what torch itself has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("name", adapter.NAMES)
def test_torch_still_has(name):
    adapter.resolve(name)


def test_a_missing_name_is_told_with_the_version_and_nothing_is_counted(monkeypatch):
    monkeypatch.setattr(adapter, "NAMES", ("torch._inductor.graph.GraphLowering.gone",))
    with pytest.raises(NotMeasuredError, match=r"cannot count on paper with torch \d.*gone") as c:
        adapter.check()
    assert c.value.code == 3


def test_inductor_tells_whether_a_graph_is_for_inference():
    """`_OPTIONS` are read by name: were they renamed, convolutions would be laid out otherwise."""
    import inspect

    import torch._inductor.compile_fx as inductor

    source = inspect.getsource(inductor)
    assert all(f'"{name}"' in source or f"{name}:" in source for name in adapter._OPTIONS)


def test_inductor_calls_the_pass_that_comes_first():
    import inspect

    from torch._inductor.fx_passes import joint_graph

    source = inspect.getsource(joint_graph.joint_graph_passes)
    assert source.index("joint_custom_pre_pass") < source.index("constant_fold_uniform_value")
