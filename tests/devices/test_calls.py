"""What host calls do, by the names that CUDA, ROCm and Intel's runtime give them."""

import pytest

from kernelcount.devices.calls import Call, classify, vendor, waits


def _names(text):
    return text.split()


LAUNCHES = _names("""
    cudaLaunchKernel cudaLaunchKernel_v7000 cudaLaunchKernelExC cudaLaunchKernelExC_v11060
    cudaLaunchCooperativeKernel cudaLaunchCooperativeKernelMultiDevice cudaLaunchKernel_ptsz
    cuLaunchKernel cuLaunchKernelEx cuLaunchCooperativeKernel cuLaunchGrid cuLaunchGridAsync
    cuLaunch hipLaunchKernel hipExtLaunchKernel hipModuleLaunchKernel hipExtModuleLaunchKernel
    hipHccModuleLaunchKernel hipLaunchCooperativeKernel hipLaunchByPtr hipDrvLaunchKernelEx
    hipModuleLaunchCooperativeKernel hipExtLaunchMultiKernelMultiDevice hipLaunchKernelExC
    urEnqueueKernelLaunch urEnqueueCooperativeKernelLaunchExp urEnqueueKernelLaunchCustomExp
    piEnqueueKernelLaunch piextEnqueueCooperativeKernelLaunch zeCommandListAppendLaunchKernel
    zeCommandListImmediateAppendLaunchKernel zeCommandListAppendLaunchCooperativeKernel
""")
GRAPHS = _names("cudaGraphLaunch cudaGraphLaunch_v10000 cuGraphLaunch hipGraphLaunch")
COPIES = _names("""
    cudaMemcpy cudaMemcpyAsync cudaMemsetAsync cuMemcpyHtoDAsync_v2 cuMemsetD32Async
    hipMemcpyAsync hipMemcpyWithStream hipMemsetAsync urEnqueueUSMMemcpy urEnqueueMemBufferFill
    zeCommandListAppendMemoryCopy
""")
NOTHING = _names("""
    cudaDeviceSynchronize cudaStreamSynchronize cudaEventRecord cudaMalloc cudaFree cudaHostAlloc
    cudaStreamIsCapturing cudaGraphInstantiate cudaGraphInstantiateWithFlags cudaGraphUpload
    cudaGraphDestroy cudaLaunchHostFunc cuLaunchHostFunc hipLaunchHostFunc cudaFuncGetAttributes
    cudaOccupancyMaxActiveBlocksPerMultiprocessor hipDeviceSynchronize urEventWait
    cuModuleLoadData cudaGraphAddKernelNode zeEventHostSynchronize launch kernel
""")
NO_NAMES = [
    "",
    "cudaLaunchKernel but not quite",
    "my cudaLaunchKernel",
    "cudaLaunchKernel" * 20_000,
]


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (Call.LAUNCH, LAUNCHES),
        (Call.GRAPH, GRAPHS),
        (Call.MEMORY, COPIES),
        (Call.CAPTURE_BEGIN, ["cudaStreamBeginCapture", "cudaStreamBeginCapture_v10000"]),
        (Call.CAPTURE_BEGIN, ["hipStreamBeginCapture", "cuStreamBeginCapture_v2"]),
        (Call.CAPTURE_END, ["cudaStreamEndCapture", "hipStreamEndCapture", "cuStreamEndCapture"]),
        (Call.OTHER, NOTHING),
        (Call.OTHER, NO_NAMES),
    ],
)
def test_a_call_does_what_its_name_says(call, names):
    assert {name: classify(name) for name in names} == dict.fromkeys(names, call)


def test_the_vendor_is_told_by_the_prefix():
    names = {
        "cudaLaunchKernel": "cuda", "cuLaunchKernel": "cuda", "hipLaunchKernel": "hip",
        "urEnqueueKernelLaunch": "xpu", "zeCommandListAppendLaunchKernel": "xpu",
        "piEnqueueKernelLaunch": "xpu", "customThing": None, "zebra": None, "urgent": None,
        "cube": None, "picture": None, "": None, "hi": None,
    }  # fmt: skip
    assert {name: vendor(name) for name in names} == names


WAITS = _names("""
    cudaDeviceSynchronize cudaStreamSynchronize cudaStreamSynchronize_ptsz cudaEventSynchronize
    cuCtxSynchronize cuStreamSynchronize cuEventSynchronize hipDeviceSynchronize
    hipStreamSynchronize hipEventSynchronize hipMemcpyWithStream cudaMemcpy cudaMemcpy2D
    cuMemcpyDtoH_v2 urQueueFinish urEventWait zeEventHostSynchronize zeCommandQueueSynchronize
""")
GOES_ON = _names("""
    cudaMemcpyAsync cudaMemcpy2DAsync cuMemcpyDtoHAsync_v2 cudaMemcpyPeer cuMemcpyDtoD_v2
    cudaMemsetAsync cudaStreamWaitEvent cudaEventQuery cudaStreamQuery cudaLaunchKernel cudaMalloc
    cudaStreamIsCapturing mycudaStreamSynchronize
""")


@pytest.mark.parametrize("name", WAITS)
def test_in_these_calls_the_cpu_waits(name):
    assert waits(name)


@pytest.mark.parametrize("name", [*GOES_ON, *NO_NAMES])
def test_from_these_it_comes_back_at_once(name):
    assert not waits(name)
