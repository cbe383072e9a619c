"""What files hold, each on its own or two beside each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from kernelcount import __version__
from kernelcount.app.answers import Answer
from kernelcount.errors import KernelcountError
from kernelcount.model import Allowance, Diff, Environment, Outcome, Report, Run, Unmeasured


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
    from kernelcount.differences import differing
    from kernelcount.differences.sides import read_sides
    from kernelcount.origins import callers

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
