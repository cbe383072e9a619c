"""``kernelcount run``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelcount.cli.options import Gpu, Output, Timeout
from kernelcount.errors import KernelcountError


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
    device: Annotated[
        str | None,
        typer.Option("--device", help="cuda, cuda:1, xpu, cpu; paper needs no GPU."),
    ] = None,
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
    form: Annotated[str, typer.Option("--format", help="table, json, markdown or csv.")] = "table",
    output: Output = None,
    save: Annotated[
        Path | None, typer.Option("--save", metavar="FILE", help="Write all captures as JSON.")
    ] = None,
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
    full: Annotated[
        bool,
        typer.Option("--full", help="All kernels, by their full names; all waits and idle times."),
    ] = False,
) -> None:
    """Count a function's kernels, eager beside torch.compile."""
    from contextlib import nullcontext

    from kernelcount import app, runners, variants, warm
    from kernelcount import inputs as specs
    from kernelcount.cli import output as out
    from kernelcount.model import Job

    try:
        out.check_format(form)
        specs_given = [target, *(variant or ())]
        reads = [Path(spec.rpartition(":")[0]) for spec in specs_given]
        drawn = Path(plot) if plot not in (None, "-") else None
        app.check_files(reads, output=output, save=save, trace=trace, plot=drawn)
        sizes = specs.parse_sizes(size) if size is not None else ()
        names = tuple(variant or variants.DEFAULT)
        job = Job(
            spec=target,
            sizes=sizes,
            inputs=tuple(inputs or ()),
            maker=maker,
            dtype=dtype,
            device=device,
            gpu=gpu,
            variants=names,
            seed=seed,
            backward=backward,
            no_grad=no_grad,
            evaluate=evaluate,
            timeout=timeout,
            seconds=seconds,
            reference=reference,
            cold=cold,
            remedy=remedy,
            traces=app.trace_files(trace.absolute(), names, sizes) if trace else (),
            ncu=ncu,
            explain=explain,
        )
        app.check_plot(plot, job, form)
        with out.status() as progress, nullcontext() if no_paper else warm.beside(job) as beside:
            answer = app.run(job, runners.in_worker, progress, beside)
    except KernelcountError as error:
        out.fail(error, form, "run")
    answer = app.save(answer, save) if save else answer
    answer = app.draw(answer, drawn) if drawn else answer
    out.show(answer, form, output, full=full, explain=explain, plotted=plot == "-")
