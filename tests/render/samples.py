"""Reports to render: what the readers would have made of real and of hostile traces."""

from __future__ import annotations

from array import array
from dataclasses import replace

from kernelcount.model import (
    NO_TIME,
    Activity,
    Capture,
    Environment,
    Lane,
    Note,
    Outcome,
    Records,
    Report,
    Run,
    Step,
    Target,
    Unmeasured,
    Work,
)

H200 = Environment("NVIDIA H200", "cuda", "2.11.0", "3.6.0", "0.1.0")
CPU = Environment("CPU", "cpu", "2.13.0", None, "0.1.0")

ADD = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
    "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)"
)
RELU = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::"
    "launch_clamp_scalar(at::TensorIteratorBase&, c10::Scalar, c10::Scalar, "
    "at::native::detail::ClampLimits)::{lambda()#1}::operator()() const::{lambda()#7}::"
    "operator()() const::{lambda(float)#1}, std::array<char*, 2ul> >(int)"
)
FUSED = "triton_poi_fused_add_relu_0"

Sample = tuple[str, Activity, str | None, int | None]
"""Name, activity, label and duration of one record."""


def records(*samples: Sample, devices: tuple[str, ...] = ()) -> Records:
    """Records one after the other; `devices` says where each ran, device 0 by default."""
    ran_on = devices or ("0",) * len(samples)
    works = tuple(dict.fromkeys(Work(name, kind, label) for name, kind, label, _ in samples))
    lanes = tuple(dict.fromkeys(Lane(device, "7") for device in ran_on))
    starts, clock = array("q"), 1000
    for *_, duration in samples:
        starts.append(clock)
        clock += duration or 0
    return Records(
        works,
        lanes,
        array("i", [works.index(Work(n, kind, label)) for n, kind, label, _ in samples]),
        array("i", [lanes.index(Lane(device, "7")) for device in ran_on]),
        starts,
        array("q", [NO_TIME if d is None else d for *_, d in samples]),
    )


def capture(name: str, *samples: Sample, launches: int | None = None, **given: object) -> Capture:
    """A complete, stable capture on an H200 with as many launches as kernels."""
    kernels = sum(1 for _, kind, _, _ in samples if kind == "kernel")
    whole = Capture(
        name,
        H200,
        None,
        records(*samples),
        kernels if launches is None else launches,
        0,
        complete=True,
        stable=True,
    )
    return replace(whole, **given)  # type: ignore[arg-type]


def run_report(*outcomes: Outcome, environment: Environment = H200) -> Report:
    target = Target("add_relu.py:add_relu", ("f32[100000000]", "f32[100000000]"))
    return Report("run", environment, (Run(outcomes, 100_000_000),), target)


def read_report(*outcomes: Outcome) -> Report:
    return Report("read", Environment(kernelcount="0.1.0"), (Run(outcomes),))


def eager(scale: int = 1000) -> Capture:
    return capture(
        "eager", (ADD, "kernel", "add", 276 * scale), (RELU, "kernel", "relu", 187 * scale)
    )


def compiled(*notes: Note, scale: int = 1000) -> Capture:
    return capture("compile", (FUSED, "kernel", None, 273 * scale), notes=notes)


def add_relu() -> Report:
    return run_report(eager(), compiled())


def on_cpu() -> Report:
    by_hand = capture(
        "eager",
        ("aten::add", "aten", None, 210_000),
        ("aten::relu", "aten", None, 140_000),
        environment=CPU,
        launches=None,
    )
    fused = capture(
        "compile", ("graph_0_cpp_fused_add_relu_0", "generated", None, 95_000), environment=CPU
    )
    return run_report(by_hand, fused, environment=CPU)


def incomplete() -> Report:
    seen = capture(
        "lost.json",
        ("nvjet_tst_192x176_64x4_1x2_h_bz_coopB_TNT", "kernel", "mm", 25_000),
        launches=2,
        complete=False,
        stable=None,
        environment=Environment("NVIDIA H200"),
    )
    reason = "2 launches, 1 kernel record (the profiler lost one)"
    return read_report(Unmeasured("lost.json", reason, seen))


def compile_failed() -> Report:
    return run_report(eager(), Unmeasured("compile", "torch.compile raised BackendCompilerFailed"))


def not_compiled() -> Report:
    note = Note("not-compiled", "0 graphs were compiled")
    return run_report(eager(), replace(eager(), name="compile", notes=(note,)))


def recompile_limit() -> Report:
    detail = "'compile' ran as eager code: the recompile limit (8) was reached at step.py:14"
    other = replace(eager(), name="compile", notes=(Note("recompile-limit", detail),))
    return run_report(eager(), other)


def many_kernels() -> Report:
    names = [f"triton_red_fused_add_native_layer_norm_backward_view_{i}" for i in range(30)]
    ran: list[Sample] = [(n, "kernel", None, 40_000 - 1_000 * i) for i, n in enumerate(names)]
    ran += [(names[3], "kernel", None, 37_000)] * 11
    ran += [
        ("Memcpy HtoD (Pageable -> Device)", "copy", "copy_", 9_500),
        ("Memset (Device)", "fill", None, 900),
    ]
    sms = "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8_stage3_warpsize1x2x1_ffma_aligna4"
    ran.append((f"{sms}_alignc4_execute_split_k_kernel__5x_cublas", "kernel", "addmm", 61_000))
    return run_report(capture("eager", *ran), compiled())


def two_devices() -> Report:
    ran: tuple[Sample, ...] = (
        (ADD, "kernel", "aten::add", 10_000),
        (ADD, "kernel", "aten::add", 9_000),
        (
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
            "kernel",
            None,
            6_000,
        ),
    )
    both = records(*ran, devices=("0", "1", "1"))
    return read_report(capture("two.json", *ran, records=both, stable=None))


def three_steps() -> Report:
    ran: list[Sample] = [(FUSED, "kernel", None, 4_000)] * 7
    steps = (
        Step("ProfilerStep#5", 3, 12_000),
        Step("ProfilerStep#6", 2, 8_000),
        Step("ProfilerStep#7", 2, 8_000),
    )
    return read_report(capture("steps.json.gz", *ran, steps=steps, stable=None))


def sweep() -> Report:
    runs = tuple(
        Run((eager(scale), compiled(scale=scale)), size)
        for size, scale in ((100, 5), (1_000_000, 12), (100_000_000, 1000))
    )
    return Report("run", H200, runs, Target("add_relu.py:add_relu", ("f32[N]", "f32[N]")))


def unstable() -> Report:
    wobbly = compiled(Note("unstable", "calls 11 and 12 launched 3 and 4 kernels"))
    return run_report(eager(), replace(wobbly, stable=False))


def remembered() -> Report:
    note = Note("memoised", "1 kernel ran in warm-up, the result was kept")
    return run_report(eager(), capture("compile", notes=(note,)))


def no_kernels() -> Report:
    return run_report(capture("eager"), capture("compile"))


def more_kernels() -> Report:
    ran: list[Sample] = [(FUSED, "kernel", None, 50_000)] * 41
    return run_report(eager(), capture("compile", *ran))


def as_many() -> Report:
    return run_report(compiled(), replace(compiled(), name="kernels.py:by_hand"))


def no_device() -> Report:
    reason = "no GPU was found: torch 2.13.0+cpu is a build without CUDA"
    return run_report(Unmeasured("eager", reason), Unmeasured("compile", reason), environment=CPU)


def graphs() -> Report:
    ran: list[Sample] = [(FUSED, "kernel", None, 4_000)] * 24
    ran.append(("Memcpy DtoD (Device -> Device)", "copy", "copy_", 2_000))
    names = (
        "compile",
        "compile:reduce-overhead",
        "compile:max-autotune-no-cudagraphs",
        "mine.py:g",
    )
    l2 = Note("served-by-l2", "the data fits into the L2 cache (60 MB)")
    return run_report(
        replace(eager(), notes=(l2,)),
        *(capture(n, *ran, launches=1, graph_launches=1, notes=(l2,)) for n in names),
    )


def overlap() -> Report:
    ran: tuple[Sample, ...] = ((ADD, "kernel", "add", 100_000), (RELU, "kernel", "relu", 100_000))
    both = replace(records(*ran), start_ns=array("q", [0, 50_000]))
    return read_report(capture("streams.json", *ran, records=both, stable=None))


def untimed() -> Report:
    ran: tuple[Sample, ...] = (
        (ADD, "kernel", None, 35_000),
        ("nvjet_hsh_128x128", "kernel", None, None),
        ("nvjet_hsh_128x128", "kernel", None, None),
    )
    note = Note("invalid-times", "2 kernels have no valid time: counted, left out of the times")
    return read_report(capture("zero.json", *ran, stable=None, launches=None, notes=(note,)))


EVIL = (
    "\x1b[31mred\x1b[0m",
    "a|b`c`|",
    "<script>alert(1)</script>",
    "two\nlines\r::error::pwned",
    "[red]markup[/red] :smile:",
    "\u202eesrever\u2066",
    "half \ud83d pair, \x9b31m, nul \x00",
    "核" * 100,
    "=HYPERLINK(1)",
    "x" * 300,
)


def evil() -> Report:
    ran: list[Sample] = [(name, "kernel", name[::-1], 1_000) for name in EVIL]
    # A name that reads the same backwards is its own label already.
    ran += [
        (name, "kernel", None if name != name[::-1] else f"{name[:40]}2", 1_000) for name in EVIL
    ]
    notes = tuple(Note(f"odd-{i}", name) for i, name in enumerate(EVIL))
    return read_report(
        capture("\x1b]0;title\x07=cmd|' /C calc'!A0.json", *ran, notes=notes),
        Unmeasured(EVIL[3], EVIL[0] + EVIL[3]),
    )
