"""The private names of torch: each must be there, and a missing one must be told."""

import pytest
import torch

from kernelcount.errors import NotMeasuredError
from kernelcount.paper import adapter, cards

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


def test_a_torch_older_than_what_was_tried_is_refused_though_it_has_the_names(monkeypatch):
    monkeypatch.setattr("torch.__version__", "2.10.1+cpu")
    with pytest.raises(NotMeasuredError, match=r"with torch 2\.10\.1\+cpu: it is older than 2\.11"):
        adapter.check()


# ── what each name is relied upon to do ──────────────────────────────────────────────────────────


def test_a_trace_is_told_from_a_call():
    from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

    assert not adapter.tracing()
    with FakeTensorMode():
        assert adapter.tracing()
    assert adapter.is_fake(FakeTensor)
    assert not adapter.is_fake(torch.nn.Parameter)


def test_ops_made_of_others_are_told_and_taken_apart():
    aten = torch.ops.aten
    assert adapter.is_composite(aten.matmul.default)
    assert not adapter.is_composite(aten.mm.default)
    made = adapter.decomposed(aten.matmul.default, (torch.ones(2, 3), torch.ones(3, 2)), {})
    assert made.tolist() == [[3, 3], [3, 3]]


def test_a_schema_tells_what_an_op_changes_and_a_tag_what_is_pointwise():
    aten = torch.ops.aten
    assert adapter.is_mutable(aten.add_.Tensor)
    assert not adapter.is_mutable(aten.add.Tensor)
    first = adapter.parameters_of(aten.add_.Tensor)[0]
    assert (first.name, first.alias_info.is_write, first.is_out) == ("self", True, False)
    last = adapter.parameters_of(aten.add.out)[-1]
    assert (last.name, last.alias_info.is_write, last.is_out) == ("out", True, True)
    assert adapter.is_pointwise(aten.relu.default)
    assert not adapter.is_pointwise(aten.sum.default)
    assert adapter.is_op(aten.relu.default)
    assert not adapter.is_op(torch.relu)


def test_views_share_an_id_and_copies_do_not():
    a = torch.ones(4, device="meta")
    assert adapter.unique_id(a) == adapter.unique_id(a[1:].view(1, 3))
    assert adapter.unique_id(a) != adapter.unique_id(a.clone())


def test_a_fake_may_be_on_a_device_that_is_not_there_and_keeps_its_strides():
    mode = adapter.new_fake_mode([])
    fake = adapter.fake_like(torch.ones(2, 3).t(), "cuda:0", mode)
    assert (fake.device.type, fake.shape, fake.stride()) == ("cuda", (3, 2), (1, 3))
    assert adapter.fake_mode_of([fake]) is mode


def test_the_default_device_is_told_without_making_a_tensor():
    assert adapter.default_device() is None
    with torch.device("meta"):
        assert adapter.default_device().type == "meta"
        with adapter.made_on_the_host():
            assert torch.ones(1).device.type == "cpu"


def test_the_compiler_tells_when_it_begins_and_ends():
    told = []
    torch.compiler.reset()
    with adapter.told_of_compiling(lambda: told.append("begin"), lambda: told.append("end")):
        torch.compile(lambda a: a + 1, backend="eager")(torch.ones(2))
    assert told == ["begin", "end"]
    torch.compile(lambda a: a + 2, backend="eager")(torch.ones(2))
    assert len(told) == 2


def test_a_function_that_is_never_compiled_runs_as_it_is():
    from torch._dynamo.utils import counters

    def let_be(a):
        return a * 3

    adapter.never_compiled(let_be)
    before = counters["stats"]["unique_graphs"]
    assert torch.equal(torch.compile(let_be)(torch.ones(2)), torch.full((2,), 3.0))
    assert counters["stats"]["unique_graphs"] == before


def test_what_stands_in_for_a_function_is_traced_by_its_rule_and_only_as_long():
    from torch._dynamo import trace_rules

    def set_device(device):
        return None

    def unheard_of():
        return None

    rule = trace_rules.lookup(torch.cuda.set_device)
    with adapter.traced_like({"cuda.set_device": set_device, "cuda.unheard_of": unheard_of}):
        assert trace_rules.lookup(set_device) is rule
        assert trace_rules.lookup(unheard_of) is not rule
    assert trace_rules.lookup(set_device) is not rule


def test_graphs_meant_for_inductor_go_to_another():
    seen = []

    def backend(graph, inputs):
        seen.append(len(inputs))
        return graph

    torch.compiler.reset()
    with adapter.inductor_replaced(backend):
        torch.compile(lambda a, b: a + b)(torch.ones(2), torch.ones(2))
    assert seen == [2]


def test_inductor_writes_the_code_of_a_card_that_is_not_there_and_tells_its_bytes():
    module = torch.fx.symbolic_trace(lambda a: (torch.ops.aten.relu.default(a),))
    mode = adapter.new_fake_mode([])
    fake = adapter.fake_like(torch.ones(1000), "cuda:0", mode)
    for node in module.graph.nodes:
        if node.op != "output":
            node.meta["val"] = fake
    with adapter.believed_in(cards.find(None)), adapter.inductor_settings(lambda _: None):
        from torch._inductor.runtime.hints import DeviceProperties

        assert DeviceProperties.create(torch.device("cuda:0")).multi_processor_count == 132
        written = adapter.lower(module, [fake], {"is_inference": True})
    assert "triton_poi_fused_0.run(" in written.code
    assert written.traffic == ((4000, 4000),)


def test_what_the_compiler_wraps_is_found_inside():
    from torch._dynamo.exc import BackendCompilerFailed

    def backend(*_):
        raise NotMeasuredError("mine")

    torch.compiler.reset()
    with pytest.raises(BackendCompilerFailed) as caught:
        torch.compile(lambda a: a + 1, backend=backend)(torch.ones(2))
    assert isinstance(adapter.inside_compiler(caught.value), NotMeasuredError)
    assert adapter.inside_compiler(ValueError()) is None


def test_cudnns_layout_is_asked_for_as_torch_asks_for_it():
    """`believed_in` puts its own answer in the place of this function."""
    x, w = torch.ones(1, 2, 4, 4), torch.ones(2, 2, 3, 3)
    stock = torch._C._conv_determine_backend_memory_format
    last = x.to(memory_format=torch.channels_last)
    assert adapter._cudnn_layout(x, w) == torch.contiguous_format
    assert adapter._cudnn_layout(last, w) == torch.channels_last
    assert stock(x, w, torch._C._ConvBackend.Overrideable) == torch.contiguous_format


def test_an_op_is_made_of_others_while_a_trace_is_made_and_not_after_it():
    from torch._dispatch.python import enable_python_dispatcher
    from torch.fx.experimental.proxy_tensor import make_fx

    attention = torch.ops.aten.scaled_dot_product_attention.default
    x = torch.ones(1, 1, 2, 8)

    def names():
        with enable_python_dispatcher():
            graph = make_fx(attention, tracing_mode="fake")(x, x, x).graph
        return [str(n.target) for n in graph.nodes if n.op == "call_function"]

    with adapter.composite(attention, lambda q, k, v: q + k * v):
        assert names() == ["aten.mul.Tensor", "aten.add.Tensor"]
    assert "aten.add.Tensor" not in names()
