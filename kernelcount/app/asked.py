"""What can be refused before anything is measured."""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence
from pathlib import Path

from kernelcount.app.answers import PAPER_HAS_NONE
from kernelcount.errors import UsageError
from kernelcount.model import Job

_SEEDS = 2**63  # torch takes seeds up to twice that, of which those that follow one need some
_LONGEST_TIMEOUT = 1e9  # seconds; more is no number to wait for


def check_job(job: Job) -> None:
    """Refuse what can be refused without torch, before a worker starts. Raises UsageError."""
    from kernelcount import target

    target.check(job.spec)
    check_options(job)


def check_options(job: Job) -> None:
    """The same of all but the target."""
    from kernelcount import devices, inputs, variants

    variants.parse_all(job.variants)
    if job.device is not None:
        devices.parse(job.device)
    _check_paper(job)
    for spec in job.inputs:
        inputs.parse_spec(spec)
    if job.dtype is not None and job.dtype not in inputs.DTYPES:
        near = difflib.get_close_matches(job.dtype, inputs.DTYPES, n=1)
        near = near or [s for s, long in inputs.DTYPES.items() if long == job.dtype]
        hint = f"; did you mean {near[0]}?" if near else ""
        raise UsageError(f"--dtype {job.dtype!r} is not one of {', '.join(inputs.DTYPES)}{hint}")
    if job.inputs and job.maker:
        raise UsageError("--input and --inputs exclude each other: name the arguments or a maker")
    _check_numbers(job)
    if job.ncu and (job.gpu is not None or job.device is not None):
        kind = "paper" if job.gpu is not None else devices.parse(job.device or "")[0].kind
        devices.check_counters(kind)
    if job.backward and job.no_grad:
        raise UsageError("--backward and --no-grad exclude each other: there is no gradient then")
    if not job.seconds:
        _check_untimed(job)
    if job.cold and job.device is not None and devices.parse(job.device)[0].kind == "cpu":
        raise UsageError("--cold keeps inputs out of a GPU's cache: --device cpu has none")
    if twice := next((n for i, n in enumerate(job.sizes) if n in job.sizes[:i]), None):
        raise UsageError(f"--size: {twice} stands twice")


def _check_numbers(job: Job) -> None:
    if not -_SEEDS <= job.seed < _SEEDS:
        raise UsageError(f"--seed {job.seed}: write a number from {-_SEEDS} to {_SEEDS - 1}")
    if job.timeout is not None and not 0 < job.timeout <= _LONGEST_TIMEOUT:
        raise UsageError(f"--timeout {job.timeout:g}: write a number of seconds above 0")
    if not 0 <= job.seconds <= _LONGEST_TIMEOUT:
        most = f", at most {_LONGEST_TIMEOUT:g}" if job.seconds > 0 else ""
        said = f"write a number of seconds{most}, 0 for no times"
        raise UsageError(f"--seconds {job.seconds:g}: {said}")


def _check_untimed(job: Job) -> None:
    """Refuse what is found by calling variants in turn where that is switched off."""
    for asked, flag, why in (
        (job.remedy, "--remedy", "a remedy is tried by timing"),
        (job.reference, "--reference", "results are compared when calls are timed"),
        (job.cold, "--cold", "it is about times"),
    ):
        if asked:
            raise UsageError(f"{flag} and --seconds 0 exclude each other: {why}")


def _check_paper(job: Job) -> None:
    from kernelcount import paper

    if job.gpu is not None and job.device not in (None, "paper"):
        raise UsageError(f"--gpu {job.gpu}: this is the card that --device paper counts for")
    if job.device == "paper" or job.gpu is not None:
        paper.find(job.gpu)
        paper.check(job)


def check_plot(where: str | None, job: Job, form: str) -> None:
    """Refuse, before anything is measured, a plot that could not be drawn. Raises UsageError.

    `where` is a file, or ``-`` for the terminal, where the plot stands below the table.
    """
    from kernelcount.render import plot

    if where is None:
        return
    if where != plot.TERMINAL and Path(where).suffix.lower() not in plot.FILES:
        files = " or ".join(plot.FILES)
        raise UsageError(f"--plot {where}: name a file that ends in {files}, or - to see it here")
    if where == plot.TERMINAL and form != "table":
        raise UsageError(f"--plot - stands below a table, and not in {form}: name a file for it")
    if len(job.sizes) < 2:  # noqa: PLR2004
        raise UsageError("--plot shows times over sizes: give several, as --size 1e2,1e4,1e6 does")
    if job.device == "paper" or job.gpu is not None:
        raise UsageError(f"--plot shows times, and {PAPER_HAS_NONE}")
    if not job.seconds:
        raise UsageError("--plot shows times: --seconds 1 has calls timed")
    if library := plot.missing(where):
        raise UsageError(f"--plot needs {library}: pip install 'kernelcount[plot]'")


def check_files(reads: Sequence[Path] = (), **files: Path | None) -> None:
    """Refuse, before anything is measured, a file that could not be written. Raises UsageError.

    The keywords are the names of the flags. `reads` are the files that are read: they are not
    written over.
    """
    seen: dict[Path, str] = {}
    for flag, path in files.items():
        if path is None:
            continue
        folder = path.absolute().parent
        if not folder.is_dir():
            raise UsageError(f"--{flag} {path}: there is no folder {path.parent}")
        if path.is_dir():
            raise UsageError(f"--{flag} {path}: this is a folder; name a file in it")
        if path.is_file() and any(r.is_file() and path.samefile(r) for r in reads):
            raise UsageError(f"--{flag} {path}: this file is read; name another to write to")
        if not os.access(path if path.exists() else folder, os.W_OK):
            raise UsageError(f"--{flag} {path}: not allowed to write there")
        if other := seen.get(path.absolute()):
            raise UsageError(f"--{other} and --{flag} name the same file, {path}")
        if path.is_file() or not path.exists():  # /dev/null may well stand for all of them
            seen[path.absolute()] = flag
