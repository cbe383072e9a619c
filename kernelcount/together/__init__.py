"""What can only be said of several variants of one target in one process: times, taken in turn.

It comes after all of them are counted. Whatever fails here costs no count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace

from kernelcount.capture import Progress, Subject, Way
from kernelcount.model import NOT_TIMED, Capture, LaunchCosts, Note, Numerics, Timing
from kernelcount.probes import configs
from kernelcount.together.comparing import compare_results
from kernelcount.together.costs import launching_costs
from kernelcount.together.precision import imprecise, served_by_cache
from kernelcount.together.running import Running
from kernelcount.together.turns import Timed, in_turn, take_median_times

__all__ = ["Running", "measure"]


def measure(
    subject: Subject,
    counted: Sequence[tuple[Way, Capture]],
    progress: Progress,
    explain: Callable[[BaseException], str],
    scratch: str | None = None,
) -> list[Capture]:
    """The captures with the time of a call, and the memory it takes, where these can be measured.

    A variant that raises meanwhile costs its own times and results, not those of the others; a
    note has what `explain` words of it. Traces are put below the folder `scratch`; None: where
    temporary files go. Raises what goes wrong beside the variants' calls; their state is put back.
    """
    captures = [capture for _, capture in counted]
    timed: dict[int, Timed] = {}
    with ExitStack() as stack:
        stack.enter_context(configs.kept())
        stack.enter_context(subject.device.prepare())

        def failed(i: int, error: BaseException) -> None:
            if isinstance(error, KeyboardInterrupt):
                raise error
            if i in timed:
                timed.pop(i).run.put_back()
            note = Note(NOT_TIMED, f"not timed: {explain(error)}")
            captures[i] = replace(captures[i], notes=(*captures[i].notes, note))

        for i, (way, capture) in enumerate(counted):
            try:
                timed[i] = Timed(Running(way, subject, stack), capture)
            except BaseException as error:  # noqa: BLE001  whatever user code raises costs its times
                failed(i, error)
        progress("comparing the results")
        compared = compare_results(timed, failed, wanted=subject.reference)
        progress("timing")
        in_turn(timed, failed, subject)
        disturbed = subject.device.disturbed()
        progress("profiling, for the times")
        take_median_times(subject, timed, failed, scratch)
        costs = launching_costs(subject, list(timed.values()))
    for i, capture in _with_times(subject, timed, compared, costs, disturbed):
        captures[i] = capture
    return captures


def _with_times(
    subject: Subject,
    timed: dict[int, Timed],
    compared: dict[int, Numerics | None],
    costs: LaunchCosts | None,
    disturbed: Sequence[Note],
) -> Iterator[tuple[int, Capture]]:
    """The captures of those that were timed, each with its position, and all that was found."""
    names = tuple(t.candidate.name for t in timed.values())
    served = served_by_cache(subject, [t.candidate for t in timed.values()])
    for i, t in timed.items():
        yield (
            i,
            replace(
                t.capture,
                peak_memory=t.run.peak_memory,
                numerics=compared.get(i),
                timing=Timing(tuple(t.candidate.samples), t.candidate.batch, names, costs),
                notes=(
                    *t.capture.notes,
                    *served,
                    *disturbed,
                    *imprecise(t.candidate, timed.values()),
                ),
            ),
        )
