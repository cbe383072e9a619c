"""The results of each variant beside those of the first."""

from __future__ import annotations

from kernelcount.memory import is_out_of_memory
from kernelcount.model import Numerics
from kernelcount.probes import randomness
from kernelcount.probes.agreement import alone, beside
from kernelcount.probes.kept import Results
from kernelcount.together.running import Running
from kernelcount.together.turns import Failed, Timed


def compare_results(
    timed: dict[int, Timed], failed: Failed, *, wanted: bool
) -> dict[int, Numerics | None]:
    """The results of each beside those of the first, which has none itself. Also takes memory.

    How far they are from the truth is found out where they differ, or where that is `wanted`. Where
    memory is lacking, that may be for the copies' sake, and whatever else goes wrong in copying and
    comparing is none of the variants' doing: they can be timed all the same.
    """
    found: dict[int, Numerics | None] = {}
    runs = [t.run for t in timed.values()]
    for run in runs:  # what one changes is compared with what the others leave alone
        run.tells_arguments = any(r.changes_arguments for r in runs)
        run.tells_module = any(r.changes_module for r in runs)
    touched = [run.touches for run in runs]
    for run in runs:
        run.tells = set().union(*(v for v, _ in touched)), set().union(*(g for _, g in touched))
    for run in reversed(runs):  # each begins with what the first call of all began with
        run.rewind()
    expected: tuple[Running, tuple[Results, randomness.Drawn]] | None = None
    without = "the first variant has no results"
    for i, t in list(timed.items()):
        try:
            if i == 0:
                expected = t.run, t.run.results()
                found[i] = alone(*expected) if wanted else None
            elif expected is None:
                t.run.results()  # for the memory that it takes
                found[i] = Numerics("unknown", 0, notes=(without,))
            else:
                found[i] = beside(*expected, t.run, wanted=wanted)
        except BaseException as error:  # noqa: BLE001  whatever user code raises costs its times
            users = any(run.raised is error for run in runs) or not isinstance(error, Exception)
            if users and not is_out_of_memory(error):
                failed(i, error)
                continue
            reason = _incomparable(error)
            found[i] = Numerics("unknown", 0, notes=(reason,)) if i else None
            without = without if i else reason
    return found


def _incomparable(error: BaseException) -> str:
    """Why results are not compared: what copies or compares them here has failed."""
    if is_out_of_memory(error):
        return "no memory to keep the results of two variants"
    said = f"{type(error).__name__}: {error}".partition("\n")[0]
    return f"cannot be compared: {said}"
