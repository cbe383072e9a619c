"""Which variants of two files belong together.

Two files of one variant each are held against each other, whatever both are called. Otherwise names
decide, and the target, inputs and setup as far as both files know them: the strictest likeness that
finds one on either side, so that nothing is held against what merely has the same name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kernelcount.model import Capture, Side

Paired = list[tuple[str, Side, Side]]
"""What both are called, the one before and the one after."""


def paired(before: Sequence[Side], after: Sequence[Side]) -> tuple[Paired, list[Side], list[Side]]:
    """The variants that belong together, in the order of `before`, and the rest of either."""
    if len(before) == len(after) == 1:
        (old,), (new,) = before, after
        if old.kind == new.kind == "trace":
            return [("trace", old, new)], [], []
        same = old.name == new.name
        return [(new.name if same else f"{old.name} → {new.name}", old, new)], [], []
    found: dict[int, int] = {}
    for facts in _likenesses(before, after):
        keys = [tuple(fact(side) for fact in facts) for side in before]
        theirs = [tuple(fact(side) for fact in facts) for side in after]
        for i, key in enumerate(keys):
            if keys.count(key) == theirs.count(key) == 1 and i not in found:
                j = theirs.index(key)
                if j not in found.values():
                    found[i] = j
    found.update(_untold(before, after, found))
    pairs = [(named(before[i], before), before[i], after[j]) for i, j in sorted(found.items())]
    left = [side for i, side in enumerate(before) if i not in found]
    return pairs, left, [side for j, side in enumerate(after) if j not in found.values()]


def _untold(before: Sequence[Side], after: Sequence[Side], found: dict[int, int]) -> dict[int, int]:
    """Those of one name that are left, as many on both sides, of which one side tells no target.

    So it is where nothing of a variant could be measured.
    """
    old: dict[str, list[int]] = {}
    new: dict[str, list[int]] = {}
    taken = set(found.values())
    for i, side in enumerate(before):
        if i not in found:
            old.setdefault(side.name, []).append(i)
    for j, side in enumerate(after):
        if j not in taken:
            new.setdefault(side.name, []).append(j)
    pairs: dict[int, int] = {}
    for name in old.keys() & new.keys():
        specs = ({_spec(before[i]) for i in old[name]}, {_spec(after[j]) for j in new[name]})
        if len(old[name]) == len(new[name]) and {""} in specs:
            pairs.update(zip(old[name], new[name], strict=True))
    return pairs


def named(side: Side, among: Sequence[Side]) -> str:
    """The name of a variant, with as much more as tells it from the others of its file."""
    several = len({_spec(s) for s in among}) > 1
    parts = [f"{place(side)} {side.name}" if several else side.name]
    namesakes = [s for s in among if (_spec(s), s.name) == (_spec(side), side.name)]
    if len(namesakes) > 1:
        parts.append(", ".join(_inputs(side)))
        if len({_setup(s) for s in namesakes}) > 1:
            torch = _torch(side)
            parts.append(" ".join(filter(None, (_basis(side), torch and f"torch {torch}"))))
    return ", ".join(filter(None, parts))


_Fact = Callable[[Side], object]


def _likenesses(before: Sequence[Side], after: Sequence[Side]) -> list[tuple[_Fact, ...]]:
    """What both must share, from the strictest on."""
    known: list[tuple[_Fact, ...]] = [
        (_name, spec, *more)
        for spec in (_spec, place)
        for more in ((_inputs, _setup), (_inputs,), (_setup,), (_torch, _basis), (_basis,), ())
    ]
    # Where each file is about one function, it may have another name by now.
    alone = all(len({_spec(s) for s in sides}) == 1 for sides in (before, after))
    if alone and "lock" not in {s.kind for s in (*before, *after)}:
        known += [(_name, _inputs), (_name,)]
    return known


def _name(side: Side) -> str:
    return side.name


def _capture(side: Side) -> Capture:
    return side.capture or Capture("")


def _spec(side: Side) -> str:
    target = _capture(side).target
    return target.spec if target else ""


def place(side: Side) -> str:
    """The target without the folder of its file, which depends on where it was named from."""
    path, colon, name = _spec(side).rpartition(":")
    return f"{path.replace(chr(92), '/').rpartition('/')[2]}{colon}{name}"


def _inputs(side: Side) -> tuple[str, ...]:
    target = _capture(side).target
    return target.inputs if target else ()


def _basis(side: Side) -> str:
    return _capture(side).basis


def _torch(side: Side) -> str | None:
    return _capture(side).environment.torch


def _setup(side: Side) -> object:
    environment = _capture(side).environment
    return environment.device, environment.torch, environment.triton, _basis(side)
