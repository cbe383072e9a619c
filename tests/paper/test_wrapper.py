"""Inductor's code, parsed: each call classified, an unknown one kept."""

from kernelcount.paper.wrapper import Call, calls

CODE = """
from torch._inductor.utils import maybe_profile
aten = torch.ops.aten
empty_strided_cuda = torch._C._dynamo.guards._empty_strided_cuda
async_compile = AsyncCompile()
triton_poi_fused_add_0 = async_compile.triton('triton_poi_fused_add_0', '''x''')

class Runner:
    def __init__(self, partitions):
        self.partitions = partitions

    def recursively_apply_fns(self, fns):
        launch_everything()

    def call(self, args):
        arg0_1, arg1_1 = args
        args.clear()
        assert_size_stride(arg0_1, (4, ), (1, ))
        with torch.cuda._DeviceGuard(0):
            torch.cuda.set_device(0)
            buf0 = empty_strided_cuda((4, ), (1, ), torch.float32)
            stream0 = get_raw_stream(0)
            triton_poi_fused_add_0.run(arg0_1, buf0, 4, stream=stream0)
            extern_kernels.mm(reinterpret_tensor(buf0, (2, 2), (2, 1), 0), arg1_1, out=buf0)
            buf1 = aten.sort.stable(buf0, stable=False)
            buf0.copy_(arg1_1, False)
            mystery(buf0)
        return (buf0, )

def benchmark_compiled_module():
    launch_everything()
"""


def test_calls_are_found_in_order_and_classified():
    assert calls(CODE) == [
        Call("generated", "triton_poi_fused_add_0"),
        Call("library", "extern_kernels.mm"),
        Call("library", "aten.sort.stable"),
        Call("copy", "copy_", "pageable copy"),
        Call("unknown", "mystery"),
    ]


def test_a_kernel_that_is_run_twice_counts_twice():
    code = "def call(args):\n    a.run(1)\n    a.run(2)\n"
    assert calls(code) == [Call("generated", "a")] * 2


def test_code_for_the_cpu_launches_nothing():
    assert calls("def call(args):\n    cpp_fused_add_0(args)\n") == []


def test_what_a_buffer_is_asked_is_no_second_call_of_what_made_it():
    code = (
        "def call(args):\n    buf1 = torch.ops.aten.nonzero.default(buf0)\n    u0 = buf1.size(0)\n"
    )
    assert calls(code) == [Call("library", "aten.nonzero.default")]


def test_an_op_that_waits_for_the_device_launches_nothing():
    code = "def call(args):\n    torch.ops.streams.synchronize_device.default('cuda:0', 0)\n"
    assert calls(code) == [Call("wait", "streams.synchronize_device.default", "explicit")]


BRANCHES = """
def true_graph_0(args):
    triton_poi_fused_mul_0.run(args)

class Runner:
    def partition_0(self, args):
        triton_poi_fused_add_1.run(args)

    def call(self, args):
        self.partitions[0](args)
        if buf1.item():
            buf2 = true_graph_0(args)
        else:
            triton_poi_fused_sub_2.run(args)
"""


def test_what_runs_in_some_cases_only_is_a_branch():
    assert calls(BRANCHES) == [
        Call("generated", "triton_poi_fused_add_1"),
        Call("sync", "buf1.item", "item"),
        Call("branch", "true_graph_0"),
        Call("branch", "triton_poi_fused_sub_2"),
    ]


def test_it_is_told_which_copies_the_cpu_waits_for():
    code = """
def call(args):
    buf0 = empty_strided_cuda((4, ), (1, ), torch.float32)
    buf0.copy_(arg0_1, False)
    buf1 = empty_strided_cpu((4, ), (1, ), torch.float32)
    buf1.copy_(buf0, False)
    buf2 = buf0; del buf0  # reuse
    buf2.copy_(buf1, False)
    buf3 = empty_strided_cpu_pinned((4, ), (1, ), torch.float32)
    buf3.copy_(buf2, True)
    arg0_1.copy_(buf3, False)
    u0 = buf3.item()
"""
    assert [call.wait for call in calls(code)] == [
        "pageable copy", "copy to host", "pageable copy", None, None, "item",
    ]  # fmt: skip


def test_what_is_raised_where_a_value_is_not_as_it_should_be_is_no_call():
    code = """
def call(args):
    u0 = 1 if buf0.item() else 0
    if not (u0 <= 1):
        raise RuntimeError('u0 <= 1')
"""
    assert [call.name for call in calls(code)] == ["buf0.item"]
