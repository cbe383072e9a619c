"""The use cases: options in, Report out. Nothing is printed here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from kernelcount import __version__
from kernelcount.errors import KernelcountError, NotMeasuredError, UsageError
from kernelcount.model import Environment, Job, Outcome, Report, Run, Target, Unmeasured
from kernelcount.traces import saved


@dataclass(frozen=True, slots=True)
class Answer:
    """A report, and what is to be said on stderr beside it."""

    report: Report
    said: tuple[str, ...] = ()


def run(job: Job, runner: Callable[..., object], progress: Callable[[str], None]) -> Answer:
    """Count a target as the job says, by one of `runners`' functions.

    Raises KernelcountError where nothing could be asked of the target at all.
    """
    from kernelcount.runners import Results
    from kernelcount.worker import steps

    _check(job)
    results = runner(job, progress)
    assert isinstance(results, Results)
    runs: dict[int | None, list[Outcome]] = {}
    for step in steps(job):
        runs.setdefault(step.size, []).append(results.outcomes[step.index])
    target = next(iter(results.targets.values()), Target(job.spec, ()))
    report = Report(
        "run",
        replace(results.environment, kernelcount=__version__),
        tuple(Run(tuple(outcomes), size) for size, outcomes in runs.items()),
        target,
    )
    return Answer(report, tuple(results.said))


def _check(job: Job) -> None:
    """What can be refused without torch is refused before a worker starts."""
    from kernelcount import devices, inputs, paper, variants

    variants.parse_all(job.variants)
    if job.device is not None:
        devices.parse(job.device)
    if job.gpu is not None:
        paper.find(job.gpu)
        if job.device not in (None, "paper"):
            raise UsageError(f"--gpu {job.gpu} is for --device paper, not for {job.device}")
    for spec in job.inputs:
        inputs.parse_spec(spec)
    if job.dtype is not None and job.dtype not in inputs.DTYPES:
        raise UsageError(f"--dtype {job.dtype!r} is not one of {', '.join(inputs.DTYPES)}")
    if job.inputs and job.maker:
        raise UsageError("--input and --inputs exclude each other: name the arguments or a maker")
    if ":" not in job.spec:
        raise UsageError(
            f"{job.spec!r} names no function: write module:function or path/to/file.py:function"
        )


def trace_files(path: Path, variants: Sequence[str], sizes: Sequence[int]) -> tuple[str, ...]:
    """A file for each variant's trace: `path` itself for one, else with size and variant in it."""
    names = [
        ".".join([*([str(size)] if size is not None and len(sizes) > 1 else []), variant])
        for size in (sizes or (None,))
        for variant in variants
    ]
    if len(names) == 1:
        return (str(path),)
    suffix = "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix
    stem = path.name.removesuffix(suffix)
    return tuple(str(path.with_name(f"{stem}.{_plain(name)}{suffix}")) for name in names)


def _plain(name: str) -> str:
    return "".join(c if c.isalnum() or c in "-_.=" else "-" for c in name)


def read(
    paths: Sequence[Path], region: str | None, progress: Callable[[Path, int, int], None]
) -> Answer:
    """What the files hold, each on its own: one that cannot be read does not hide the others.

    Raises KernelcountError where there is one file and nothing in it can be read.
    """
    from kernelcount.reading import read_file

    outcomes: list[Outcome] = []
    said: list[str] = []
    for path in paths:
        try:
            outcomes += read_file(path, region, partial(progress, path))
        except KernelcountError as error:
            if len(paths) == 1:
                raise
            said.append(str(error))
            outcomes.append(Unmeasured(str(path), str(error), None, error.code))
    for outcome in outcomes:
        if isinstance(outcome, Unmeasured) and outcome.seen is not None:
            said.append(f"{outcome.name}: {outcome.reason}")
    environment = _common([o for o in outcomes if not isinstance(o, Unmeasured)])
    report = Report("read", environment, (Run(tuple(outcomes)),))
    return Answer(report, tuple(said))


def _common(outcomes: Sequence[Outcome]) -> Environment:
    """The environment that all captures share, as far as it goes."""
    seen = {o.environment for o in outcomes if not isinstance(o, Unmeasured)}
    shared = seen.pop() if len(seen) == 1 else Environment()
    return replace(shared, kernelcount=__version__)


def diagnose() -> list[str]:
    """A line for each device: whether it can be counted on here, or why not."""
    from kernelcount import devices

    lines: list[str] = []
    for name, device in devices.DEVICES.items():
        if name not in devices.HIDDEN:
            reason = device.missing()
            lines.append(f"{name:<6} {'no: ' + reason if reason else 'yes: ' + device.summary}")
    return lines


def record_atlas(path: Path, device: str | None, progress: Callable[[str], None]) -> int:
    """Record an atlas of library calls on a GPU into a file; how many calls it holds.

    Raises KernelcountError where there is no GPU or the file cannot be written.
    """
    import tempfile

    from kernelcount import devices, recording
    from kernelcount.paper import atlas

    chosen, name = devices.choose(device)
    if chosen.kind in ("cpu", "paper"):
        raise NotMeasuredError("an atlas is recorded on a GPU, and there is none here")
    with tempfile.TemporaryDirectory(prefix="kernelcount-") as folder, chosen.prepare():
        entries = recording.record(chosen, name, Path(folder), progress)
    try:
        path.write_text(atlas.dump(entries))
    except OSError as error:
        raise UsageError(f"--record-atlas {path}: {error.strerror}") from None
    return len(entries)


def save(report: Report, path: Path) -> None:
    """Write all captures of a report, for `read` and `diff`. Raises KernelcountError."""
    try:
        path.write_bytes(saved.dump(report.outcomes))
    except OSError as error:
        raise UsageError(f"--save {path}: {error.strerror}") from None
