"""``kernelcount run``."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelcount.cli.options import CountForm, Device, FullCount, Gpu, Output, Save, Timeout
from kernelcount.errors import KernelcountError

if TYPE_CHECKING:
    from kernelcount.model import Job


def run(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET", help="package.module:name or path/to/file.py:name", show_default=False
        ),
    ],
    size: Annotated[
        str | None,
        typer.Option("--size", metavar="N[,N...]", help="Length of each input: 1e8, 64k."),
    ] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            metavar="SPEC",
            help="One argument: f32[N,1024], i64[512]<1000, mask=bool[N].",
        ),
    ] = None,
    maker: Annotated[
        str | None,
        typer.Option("--inputs", metavar="NAME", help="A function that makes the arguments."),
    ] = None,
    dtype: Annotated[
        str | None, typer.Option("--dtype", help="Dtype of generated float inputs, such as bf16.")
    ] = None,
    variant: Annotated[
        list[str] | None,
        typer.Option(
            "--variant",
            metavar="NAME",
            help="eager, compile, compile:OPTION or module:function.",
        ),
    ] = None,
    device: Device = None,
    gpu: Gpu = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the generated inputs.")] = 0,
    backward: Annotated[
        bool, typer.Option("--backward", help="Go backward too, with ones as gradients.")
    ] = False,
    no_grad: Annotated[bool, typer.Option("--no-grad", help="Call under torch.no_grad().")] = False,
    evaluate: Annotated[bool, typer.Option("--eval", help="Put the module in eval mode.")] = False,
    timeout: Timeout = None,
    seconds: Annotated[
        float,
        typer.Option(
            "--seconds", metavar="S", help="Time calls, compare results: for so long. 0: don't."
        ),
    ] = 1.0,
    reference: Annotated[
        bool, typer.Option("--reference", help="Hold results against the same in float64.")
    ] = False,
    cold: Annotated[
        bool, typer.Option("--cold", help="Time with inputs that the L2 cache does not hold.")
    ] = False,
    remedy: Annotated[
        bool, typer.Option("--remedy", help="Try what may make it faster: TF32, bf16, CUDA graphs.")
    ] = False,
    form: CountForm = "table",
    output: Output = None,
    save: Save = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            "--trace",
            metavar="FILE",
            help="Write the raw trace; of several variants, each to FILE with its name in it.",
        ),
    ] = None,
    no_paper: Annotated[
        bool,
        typer.Option("--no-paper", help="On a GPU: leave out the count on paper, and transfers."),
    ] = False,
    plot: Annotated[
        str | None,
        typer.Option(
            "--plot",
            metavar="FILE",
            help="Plot times over several sizes: FILE.svg, FILE.png, or - to see it here.",
        ),
    ] = None,
    ncu: Annotated[
        bool,
        typer.Option("--ncu", help="Ask Nsight Compute for DRAM bytes, occupancy and stalls, too."),
    ] = False,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Source lines, what was fused with what, and why not more."),
    ] = False,
    full: FullCount = False,
) -> None:
    """Count a function's kernels, eager beside torch.compile."""
    flags = locals()
    from contextlib import nullcontext

    from kernelcount import app, runners, warm
    from kernelcount.cli import output as out

    try:
        out.check_format(form)
        reads = [Path(spec.rpartition(":")[0]) for spec in (target, *(variant or ()))]
        drawn = Path(plot) if plot not in (None, "-") else None
        app.check_files(reads, output=output, save=save, trace=trace, plot=drawn)
        job = _job(flags)
        app.check_plot(plot, job, form)
        with out.status() as progress, nullcontext() if no_paper else warm.beside(job) as beside:
            answer = app.run(job, runners.in_worker, progress, beside)
    except KernelcountError as error:
        out.fail(error, form, "run")
    answer = app.save(answer, save) if save else answer
    answer = app.draw(answer, drawn) if drawn else answer
    out.show(answer, form, output, full=full, explain=explain, plotted=plot == "-")


def _job(flags: dict[str, Any]) -> Job:
    """What is asked for. A flag that has the name of a field of the job is that field."""
    from kernelcount import app, inputs, variants
    from kernelcount.model import Job

    sizes = inputs.parse_sizes(flags["size"]) if flags["size"] is not None else ()
    names = tuple(flags["variant"] or variants.DEFAULT)
    trace = flags["trace"]
    return Job(
        **{
            **{f.name: flags[f.name] for f in fields(Job) if f.name in flags},
            "spec": flags["target"],
            "sizes": sizes,
            "inputs": tuple(flags["inputs"] or ()),
            "variants": names,
            "traces": app.trace_files(trace.absolute(), names, sizes) if trace else (),
        }
    )
