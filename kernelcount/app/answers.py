"""What comes of a run or a reading, and what of it is written to files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kernelcount.errors import UsageError
from kernelcount.model import Report, Unmeasured
from kernelcount.traces import saved

PAPER_HAS_NONE = "on paper nothing takes time: --device names a GPU, or cpu"


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
    why = PAPER_HAS_NONE if paper else "no variant was timed at two sizes"
    return replace(answer, unwritten=(*answer.unwritten, f"--plot: nothing to plot: {why}"))


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
