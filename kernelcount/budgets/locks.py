"""What a lock file has recorded, held against what was launched now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from kernelcount.budgets import lockfile
from kernelcount.budgets.budget import Budget
from kernelcount.budgets.lockfile import Entry
from kernelcount.budgets.nodes import Place
from kernelcount.errors import UsageError
from kernelcount.model import Capture, Environment, Held, Note, Outcome, Report, Status
from kernelcount.model import Place as SourceLine
from kernelcount.origins import sources
from kernelcount.origins.changed import by_names, first, origins
from kernelcount.rules import doubt


@dataclass(frozen=True, slots=True)
class Change:
    """How what was launched differs from `entry`, a line each in `details`; nothing: not at all.

    `places`: a source line of each kernel that is new, where it is known.
    """

    entry: Entry
    details: tuple[str, ...] = ()
    places: tuple[SourceLine, ...] = ()


def setup_of(environment: Environment, basis: str) -> tuple[tuple[str, str], ...]:
    """What the kernels depend on, beside the function and its arguments."""
    return lockfile.setup(
        (
            ("gpu", environment.architecture or environment.device),
            ("torch", environment.torch),
            ("triton", environment.triton),
            *environment.libraries,
            ("basis", basis),
        )
    )


def entry_of(
    target: str, variant: str, outcome: Outcome, inputs: Sequence[str] = ()
) -> Entry | str:
    """What is recorded of a variant; or why it is not. `inputs` as in `Entry`."""
    if not isinstance(outcome, Capture):
        return outcome.reason
    if outcome.on_cpu:
        return "no GPU was involved"
    if reason := doubt(outcome):
        return reason
    kernels: Counter[str] = Counter()
    for row in outcome.rows():
        if row.activity == "kernel":
            kernels[row.name] += row.count
    on_paper = outcome.paper is not None
    return Entry(
        target,
        variant,
        setup_of(outcome.environment, outcome.basis),
        tuple(sorted(kernels.items())),
        None if outcome.paper is not None and outcome.paper.at_least else outcome.count("copy"),
        None if on_paper else outcome.count("fill"),
        tuple(inputs),
    )


def changed(now: Entry, recorded: Iterable[Entry], outcome: Outcome) -> Change | None:
    """How it differs from what is recorded for the same setup; None where nothing is."""
    same = (e for e in _of_same(now, recorded) if not _differing(now, e))
    entry = next(same, None)
    if entry is None:
        return None
    lines = _lines_of(outcome, now, entry)
    return Change(entry, tuple(_differences(now, entry, lines)), tuple(lines.values()))


def nearest(now: Entry, recorded: Iterable[Entry]) -> tuple[Entry, str] | None:
    """The entry whose setup differs the least, and in what; None where nothing is recorded."""
    others = [(e, _differing(now, e)) for e in _of_same(now, recorded)]
    if not others:
        return None
    entry, names = min(others, key=lambda pair: len(pair[1]))
    here, there = dict(now.setup), dict(entry.setup)
    return entry, ", ".join(f"{n} {there[n]} instead of {here.get(n, 'none')}" for n in names)


def differences(now: Entry, entry: Entry) -> tuple[str, ...]:
    """What was launched otherwise, a line each."""
    return tuple(_differences(now, entry, {}))


def _lines_of(outcome: Outcome, now: Entry, entry: Entry) -> dict[str, SourceLine]:
    """A source line of each kernel that is not in `entry`, where it is known.

    It is the first of what none of those that are gone computed, as far as their names tell.
    """
    if not isinstance(outcome, Capture):
        return {}
    new, known = dict(now.kernels), dict(entry.kernels)
    gone = [name for name in known if name not in new]
    ops = origins(outcome)
    lines = {}
    for (name, _, activity), row in sources.of_rows(outcome).items():
        if name in new and name not in known and row.places:
            other = by_names(ops.get((name, activity), ()), gone)
            lines[name] = first(row.places, other)[0]
    return lines


def _of_same(now: Entry, recorded: Iterable[Entry]) -> Iterator[Entry]:
    """Those of the same target and variant; one without arguments is of any."""
    for entry in recorded:
        same = (entry.target, entry.variant) == (now.target, now.variant)
        if same and entry.inputs in ((), now.inputs):
            yield entry


def _differing(now: Entry, entry: Entry) -> list[str]:
    """In what the setups differ; what an entry does not say may be anything."""
    here = dict(now.setup)
    return [name for name, value in entry.setup if here.get(name) != value]


def _differences(now: Entry, entry: Entry, lines: Mapping[str, SourceLine]) -> Iterator[str]:
    after, before = dict(now.kernels), dict(entry.kernels)
    for name, n in after.items():
        if name not in before:
            at = lines.get(name)
            place = f"   {Path(at.file).name}:{at.line}" if at else ""
            yield f"new: {name}{_several(n)}{place}"
    for name, n in before.items():
        if name not in after:
            yield f"gone: {name}{_several(n)}"
    for name, n in after.items():
        if n != before.get(name, n):
            yield f"{n} instead of {before[name]}: {name}"
    for what, there, here in _moves(now, entry):
        yield f"{what}: {here} instead of {there}"


def _moves(now: Entry, entry: Entry) -> list[tuple[str, int, int]]:
    """Copies and fills that are not as many as in `entry`: what, how many there, how many now."""
    pairs = (("copies", entry.copies, now.copies), ("fills", entry.fills, now.fills))
    return [
        (what, there, here)
        for what, there, here in pairs
        if there is not None and here is not None and there != here
    ]


def _in_a_word(now: Entry, entry: Entry) -> str:
    """What of it is not as it is in `entry`; empty where nothing is."""
    after, before = dict(now.kernels), dict(entry.kernels)
    if after.keys() != before.keys():
        return "it launches other kernels than are recorded"
    if after != before:
        return "it launches the same kernels another number of times than is recorded"
    moved = " and ".join(what for what, _, _ in _moves(now, entry))
    return f"it makes another number of {moved} than is recorded" if moved else ""


def _several(n: int) -> str:
    return f" ({n})" if n > 1 else ""


@dataclass
class _Lock:
    """One lock file: what is recorded in it, and what was seen now, with how it compares."""

    path: Path
    recorded: list[Entry]
    seen: list[Entry] = field(default_factory=list)
    unseen: list[tuple[str, str, str]] = field(default_factory=list)
    missing: list[Entry] = field(default_factory=list)
    asked: dict[str, set[str]] = field(default_factory=dict)  # the variants of each target
    exists: bool = True


class Locks:
    """The lock files beside the budgets. Raises UsageError for one that cannot be read."""

    def __init__(self, budgets: Sequence[Budget]) -> None:
        self._locks: dict[Path, _Lock] = {}
        self._often: Counter[tuple[Path, str]] = Counter()
        for budget in budgets:
            folder = Path(budget.place.file).parent
            path = folder / lockfile.NAME
            self._often[path, budget.target] += 1
            if path not in self._locks:
                self._locks[path] = _Lock(path, lockfile.read(path), exists=path.exists())
            asked = self._locks[path].asked.setdefault(budget.target, set())
            asked.update(budget.variants)

    def compared(
        self, budget: Budget, report: Report, held: Sequence[Held], *, update: bool
    ) -> Iterator[Held]:
        """The limits, and each variant as its lock file has it; what changed stands with both."""
        path = Path(budget.place.file).parent / lockfile.NAME
        lock = self._locks[path]
        several = self._often[path, budget.target] > 1
        rows: list[Held] = []
        changes: dict[str, tuple[str, ...]] = {}
        places: dict[str, tuple[SourceLine, ...]] = {}
        for variant, outcome in zip(budget.variants, report.runs[0].outcomes, strict=True):
            inputs = _told_apart(budget, report) if several else ()
            entry = entry_of(budget.target, variant, outcome, inputs)
            if isinstance(entry, str):
                lock.unseen.append((budget.target, variant, entry))
                if not update:
                    rows += _unknown(budget, lock, variant, report, entry)
                continue
            lock.seen.append(entry)
            change = changed(entry, lock.recorded, outcome)
            if change is None:
                lock.missing += [entry] if lock.recorded else []
            elif not update:
                changes[variant] = change.details
                places[variant] = tuple(dict.fromkeys(change.places))
                rows.append(_recorded(budget, lock, variant, change, entry))
        for row in held:
            broken = row.status == "broken"
            changed_so = changes.get(row.variant, ()) if broken else ()
            at = places.get(row.variant, ()) if broken else ()
            details = (*changed_so, *row.details)
            yield replace(row, details=details, places=(*at, *row.places))
        for row in rows:
            yield replace(row, places=places.get(row.variant, ()))

    def notes(self, *, update: bool) -> Iterator[Note]:
        """What could not be compared, or recorded, and why."""
        for lock in self._locks.values():
            for target, variant, reason in lock.unseen if update else ():
                yield Note("not-recorded", f"{target}, {variant}: not recorded: {reason}")
            if not update:
                yield from _missing(lock)
                yield from _odd(lock)

    def write(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Write what was seen: the files that were written, and why others were not."""
        written: list[str] = []
        unwritten: list[str] = []
        for path, lock in self._locks.items():
            if not lock.seen:
                continue
            try:
                text = path.read_text(encoding="utf-8-sig") if path.exists() else ""
                new = lockfile.updated(text, str(path), lock.seen)
                if new != text:
                    path.write_text(new, encoding="utf-8")
            except (OSError, UsageError) as error:
                reason = error.strerror if isinstance(error, OSError) else error
                unwritten.append(f"{path}: {reason}")
                continue
            known = {replace(e, line=0) for e in lock.recorded}
            news = sum(e not in known for e in lock.seen)
            written.append(f"{path}: {news} of {len(lock.seen)} entries are new or changed")
        return tuple(written), tuple(unwritten)


def _told_apart(budget: Budget, report: Report) -> tuple[str, ...]:
    """How a budget calls its target, where others call it too."""
    job = budget.job
    asked = (("backward", job.backward), ("no_grad", job.no_grad), ("eval", job.evaluate))
    maker = [f"inputs={Path(job.maker).name}"] if job.maker else []
    given = report.target.inputs if report.target else ()
    return (*given, *maker, *(word for word, wanted in asked if wanted))


def _unknown(
    budget: Budget, lock: _Lock, variant: str, report: Report, reason: str
) -> Iterator[Held]:
    """A variant that is recorded for this setup, and of which nothing is known now."""
    environment = report.environment
    basis = "paper" if environment.kind == "paper" else "measured"
    asked = Entry(budget.target, variant, setup_of(environment, basis), ())
    for entry in lock.recorded:
        if (entry.target, entry.variant) == asked.key[:2] and not _differing(asked, entry):
            place = Place(str(lock.path), entry.line)
            yield budget.held(place, variant, "lock", "undecided", why=reason)
            return


def _recorded(budget: Budget, lock: _Lock, variant: str, change: Change, entry: Entry) -> Held:
    """A variant as its lock file has it."""
    status: Status = "broken" if change.details else "kept"
    basis = dict(entry.setup)["basis"]
    place = Place(str(lock.path), change.entry.line)
    why = _in_a_word(entry, change.entry)
    more: dict[str, object] = {"why": why, "details": change.details, "basis": basis}
    return budget.held(place, variant, "lock", status, **more)


def _missing(lock: _Lock) -> Iterator[Note]:
    """What is not recorded for this setup; what is nearest, and how that differs."""
    groups: dict[str, list[str]] = {}
    for entry in lock.missing:
        near = nearest(entry, lock.recorded)
        name = f"{entry.target} {entry.variant}"
        if near is None:
            groups.setdefault("", []).append(name)
            continue
        changes = differences(entry, near[0])
        named = f"{name} ({'; '.join(changes)})" if changes else name
        groups.setdefault(near[1], []).append(named)
    for how, names in groups.items():
        listed = ", ".join(names)
        if how:
            yield Note(
                "lock-other-setup",
                f"{lock.path}: not recorded for this setup: {listed}; the nearest has {how}",
            )
        else:
            yield Note("lock-unknown", f"{lock.path} has nothing of {listed}")


def _odd(lock: _Lock) -> Iterator[Note]:
    """A file or an entry of which something was lost, and variants that no budget has any more."""
    if lock.exists and not lock.recorded:
        yield Note("lock-empty", f"{lock.path} records nothing, so nothing is compared with it")
    for entry in lock.recorded:
        if not entry.whole:
            detail = f"{lock.path}:{entry.line}: the entry does not say how many copies and fills"
            yield Note("lock-incomplete", f"{detail} there are: these are not compared")
    left = {
        f"{entry.target} {entry.variant}": None
        for entry in lock.recorded
        if entry.variant not in lock.asked.get(entry.target, {entry.variant})
    }
    if left:
        detail = f"{lock.path} records what no budget here has: {', '.join(left)}"
        yield Note("lock-left-over", detail)
