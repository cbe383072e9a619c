"""The use cases: options in, Report out. Nothing is printed here."""

from __future__ import annotations

import difflib
import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from kernelcount import __version__
from kernelcount.errors import KernelcountError, UsageError, UserCodeError
from kernelcount.model import (
    EAGER_CODE,
    Allowance,
    Beside,
    Capture,
    Checked,
    Diff,
    Environment,
    Fusion,
    Job,
    Outcome,
    Provenance,
    Rates,
    Report,
    Run,
    Scenario,
    Target,
    Unmeasured,
    Verdict,
    note_codes,
)
from kernelcount.traces import saved

if TYPE_CHECKING:
    from kernelcount.beside import OnPaper
    from kernelcount.budgets.budget import Budget
    from kernelcount.budgets.checking import Options, Shown
    from kernelcount.model import Diagnosis
    from kernelcount.runners import Results, Runner

_NO_LINES = "lines are told by the count on paper, and there is none of this"
_PAPER_HAS_NONE = "on paper nothing takes time: --device names a GPU, or cpu"
_SEEDS = 2**63  # torch takes seeds up to twice that, of which those that follow one need some
_LONGEST_TIMEOUT = 1e9  # seconds; more is no number to wait for


def kept_rates(device: str, torch: str) -> Rates | None:
    """What this GPU was measured to reach under this torch, where somebody has measured it."""
    from kernelcount import rates

    return rates.kept(device, torch)


@dataclass(frozen=True, slots=True)
class Answer:
    """A report, and what is to be said on stderr beside it.

    `unwritten` says which files that were asked for could not be written, although all else is
    there.
    """

    report: Report
    said: tuple[str, ...] = ()
    unwritten: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """The report's, or 2 where a file that was asked for is missing."""
        return UsageError.code if self.unwritten else self.report.exit_code


def run(
    job: Job,
    runner: Runner,
    progress: Callable[[str], None],
    beside: OnPaper | None = None,
    rates: Callable[[str, str], Rates | None] = kept_rates,
    *,
    in_hand: bool = False,
) -> Answer:
    """Count a target as the job says, by one of `runners`' functions.

    `beside` counts on paper what is measured on a GPU; None: paper is not asked. `rates`: what the
    GPU of this name reaches under this torch, None where that was not measured. `in_hand`: the
    runner has the target, and the job's spec is no more than its name.

    Raises KernelcountError where nothing could be asked of the target at all.
    """
    from kernelcount import crossover, worker

    rates = cache(rates)  # all variants ask for those of one GPU
    (check_options if in_hand else check_job)(job)
    if job.gpu is not None:
        job = replace(job, device="paper")
    results = runner(job, progress, beside)
    papers = {} if beside is None else beside.found(results.outcomes, progress)
    if job.ncu:
        from kernelcount import ncu

        results.outcomes = ncu.counted(job, results.outcomes, progress)
    runs: dict[int | None, list[worker.Step]] = {}
    for step in worker.steps(job):
        runs.setdefault(step.size, []).append(step)
    target = next(iter(results.targets.values()), Target(job.spec, ()))
    sized = tuple(
        _run(
            [results.outcomes[s.index] for s in of_size],
            size,
            [papers.get(s.index) for s in of_size],
            rates,
        )
        for size, of_size in runs.items()
    )
    environment = replace(results.environment, kernelcount=__version__)
    report = Report("run", environment, sized, target, crossover.find(sized))
    return Answer(report, _said(results), tuple(results.unwritten))


def _run(
    outcomes: Sequence[Outcome],
    size: int | None,
    besides: Sequence[Beside | None],
    rates: Callable[[str, str], Rates | None],
) -> Run:
    from kernelcount import callers, comparison

    outcomes = [callers.seen_from_here(o) for o in outcomes]
    besides = [b and callers.beside_seen_from_here(b) for b in besides]
    outcomes = [_sourced(o, b) for o, b in zip(outcomes, besides, strict=True)]
    base = outcomes[0]
    speeds = [
        comparison.speed(base, other)
        if other is not base and isinstance(base, Capture) and isinstance(other, Capture)
        else None
        for other in outcomes
    ]
    outcomes = [comparison.with_costs(o, b) for o, b in zip(outcomes, besides, strict=True)]
    verdicts = [_verdict(o, b, rates) for o, b in zip(outcomes, besides, strict=True)]
    fusions = [_fusion(base, other) for other in outcomes]
    return Run(
        tuple(outcomes), size, tuple(besides), tuple(speeds), tuple(verdicts), tuple(fusions)
    )


def _sourced(outcome: Outcome, beside: Beside | None) -> Outcome:
    """The outcome with the lines that its records come from, or with the reason why not."""
    if not isinstance(outcome, Capture) or outcome.on_cpu:
        return outcome
    known = outcome.provenance
    if known is None and beside is not None:
        known = beside.provenance
        if isinstance(beside.outcome, Unmeasured):
            known = Provenance(unknown=f"not counted on paper: {beside.outcome.reason}")
    return replace(outcome, provenance=known or Provenance(unknown=_NO_LINES))


def _fusion(base: Outcome, other: Outcome) -> Fusion | None:
    """Which eager kernels those of a compiled variant replace; None where there are not both."""
    from kernelcount import fusion, variants

    if not isinstance(base, Capture) or not isinstance(other, Capture) or base.on_cpu:
        return None
    if variants.parse(base.name).kind != "eager" or variants.parse(other.name).kind != "compile":
        return None
    return fusion.align(base, other)


def _verdict(
    outcome: Outcome, beside: Beside | None, rates: Callable[[str, str], Rates | None]
) -> Verdict | None:
    """What holds a variant back that was measured on a GPU; None for any other."""
    from kernelcount import paper, variants
    from kernelcount.roofline import Gpu
    from kernelcount.verdict import verdict

    if not isinstance(outcome, Capture) or outcome.basis != "measured" or outcome.on_cpu:
        return None
    device, torch = outcome.environment.device or "", outcome.environment.torch or ""
    card = paper.of_device(device)
    cited, l2 = (paper.cited(card), card.l2) if card else (None, None)
    compiled = variants.parse(outcome.name).kind == "compile"
    in_eager = bool(note_codes(outcome.notes) & EAGER_CODE)
    gpu = Gpu(rates(device, torch), cited, l2)
    return verdict(outcome, beside, gpu, compiled=compiled and not in_eager)


def _said(results: Results) -> tuple[str, ...]:
    """Why variants are unmeasured: each reason once, with the names of all that it holds for."""
    from kernelcount.runners import name_of
    from kernelcount.variants import parse
    from kernelcount.worker import steps

    names: dict[str, list[str]] = {}
    raised: set[int | None] = set()  # sizes at which the function itself fails
    for step in steps(results.job):
        outcome = results.outcomes[step.index]
        if not isinstance(outcome, Unmeasured):
            continue
        text = results.said.get(step.index, outcome.reason)
        kind = parse(step.variant).kind
        if kind == "eager" and outcome.code == UserCodeError.code:
            raised.add(step.size)
        elif kind == "compile" and step.size in raised and text not in names:
            # torch.compile wraps what eager has shown already, in frames that are all torch's.
            text = outcome.reason
        # A reason alone adds nothing to the same reason with its frames.
        text = next((t for t in names if t.partition("\n")[0] == text), text)
        names.setdefault(text, []).append(name_of(step, results.job))
    return tuple(f"{', '.join(who)}: {text}" for text, who in names.items())


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
        raise UsageError(f"--plot shows times, and {_PAPER_HAS_NONE}")
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


def save(answer: Answer, path: Path) -> Answer:
    """Write all captures of a report, for `read` and `diff`; what came of it is in the answer."""
    try:
        path.write_bytes(saved.dump(answer.report.outcomes))
    except OSError as error:
        return replace(answer, unwritten=(*answer.unwritten, f"--save {path}: {error.strerror}"))
    return answer


def draw(answer: Answer, path: Path) -> Answer:
    """Write the plot of a sweep, as the file's name says; what came of it is in the answer."""
    from kernelcount.render.image import image

    drawn = image(answer.report, path.suffix.lower().lstrip("."))
    if not drawn:
        return undrawn(answer)
    try:
        path.write_bytes(drawn)
    except OSError as error:
        return replace(answer, unwritten=(*answer.unwritten, f"--plot {path}: {error.strerror}"))
    return answer


def undrawn(answer: Answer) -> Answer:
    """The answer where there are not even two times of one variant to draw a line between."""
    paper = any(
        not isinstance(o, Unmeasured) and o.basis == "paper" for o in answer.report.outcomes
    )
    why = _PAPER_HAS_NONE if paper else "no variant was timed at two sizes"
    return replace(answer, unwritten=(*answer.unwritten, f"--plot: nothing to plot: {why}"))


def diff(
    paths: tuple[Path, Path],
    allowances: Sequence[Allowance],
    *,
    variants: Sequence[str] = (),
    region: str | None = None,
    allow_undecided: bool = False,
    progress: Callable[[Path, int, int], None] = lambda *_: None,
) -> Diff:
    """What changed from one file to the other, and whether the allowances are kept.

    `variants`: those to compare, all by default. Raises KernelcountError where a file cannot be
    read, or the two have no variant in common.
    """
    from kernelcount import callers
    from kernelcount.differences import differing
    from kernelcount.differences.sides import read_sides

    before, after = (
        differing.chosen(read_sides(path, region, partial(progress, path)), variants, path)
        for path in paths
    )
    before, after = (
        [replace(side, outcome=callers.seen_from_here(side.outcome)) for side in sides]
        for sides in (before, after)
    )
    found = differing.between(*paths, before, after, allowances)
    return replace(found, allow_undecided=allow_undecided)


def doctor(atlas: Path | None, progress: Callable[[str], None]) -> Diagnosis:
    """What can be measured on this machine, and what its GPU reaches, which is kept.

    With `atlas`, one is recorded on the GPU, too.
    """
    from kernelcount.examination.child import examine

    return examine(atlas, progress)


def scenarios(names: Sequence[str]) -> tuple[tuple[Scenario, ...], Path]:
    """The scenarios of these names, all there are where none is named; and where the tool's are.

    Raises UsageError.
    """
    from kernelcount import scenarios as those

    return (those.choose(names) if names else those.find()), those.folder()


def hold(
    chosen: Sequence[Scenario],
    held: Sequence[Budget],
    runner: Runner,
    progress: Callable[[str], None],
    options: Options,
    shown: Callable[[Scenario, Checked, tuple[str, ...]], None],
    beside: Callable[[Job], OnPaper] | None = None,
) -> Checked:
    """Hold scenarios to their budgets, as `check` does; `shown` is told of each as it is known.

    What it is told beside are the user's own faults, with the user's frames: that a limit needs
    what is not here stands with the limit.

    `held` are the budgets of all of them, in order. Raises UsageError as `check` does.
    """
    coming = iter(held)
    left = Counter(budget.place.file for budget in held)
    by_file = {scenario.budget: scenario for scenario in chosen}
    parts: dict[str, list[Checked]] = {}
    faults: dict[str, list[str]] = {}

    def told(part: Checked, said: tuple[str, ...]) -> None:
        file = next(coming).place.file
        of_file = parts.setdefault(file, [])
        of_file.append(part)
        why = {held.why.removeprefix("raised ") for held in part.held if held.is_fault}
        faults.setdefault(file, []).extend(t for t in said if any(w in t for w in why))
        if len(of_file) == left[file]:
            every = tuple(limit for p in of_file for limit in p.held)
            shown(by_file[file], Checked(every, len(of_file)), tuple(faults[file]))

    return check(held, runner, progress, options, told, beside)


def budgets(paths: Sequence[Path] = ()) -> tuple[Budget, ...]:
    """The budgets in these files and folders; by default under scenarios/ and in this folder.

    Nothing is imported or counted. Raises UsageError with what is wrong in each file.
    """
    from kernelcount.budgets.files import load

    return load(paths)


def check(
    held: Sequence[Budget],
    runner: Runner,
    progress: Callable[[str], None],
    options: Options | None = None,
    shown: Shown = lambda *_: None,
    beside: Callable[[Job], OnPaper] | None = None,
) -> Checked:
    """Hold budgets against what is counted by one of `runners`' functions, or `warm.in_fork`.

    By `runners.in_process` the targets share this process, and what one of them does to it.
    `shown` is told what came of each as soon as it is known. `beside` makes what counts on paper
    beside a GPU, for limits that only paper can tell; None: those stay undecided there.

    A target that cannot be counted leaves its budget undecided. Raises UsageError for options or a
    lock file that are not what they must be.
    """
    from kernelcount.budgets import checking

    options = options or checking.Options()
    for budget in held:
        try:
            check_job(checking.job_of(budget, checking.Options()))
        except UsageError as error:
            raise budget.place.error(str(error)) from None
        check_job(checking.job_of(budget, options))

    def count(job: Job, modelled: bool) -> tuple[Report, tuple[str, ...]]:
        def say(text: str) -> None:
            progress(f"{job.spec}: {text}")

        if beside is None or not modelled:
            answer = run(job, runner, say)
        else:
            with beside(job) as on_paper:
                answer = run(job, runner, say, on_paper)
        return answer.report, answer.said

    return checking.check(held, count, options, shown)
