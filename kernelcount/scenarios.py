"""The scenarios that come with the tool: a function and its budget, in pairs.

In a source tree they stand beside the package; a wheel has them as ``kernelcount/_scenarios``.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from kernelcount.errors import NotMeasuredError, UsageError
from kernelcount.model import Scenario

THEMES: dict[str, tuple[str, ...]] = {
    "Count kernels": ("add", "add_relu", "profiler_rows", "first_call"),
    "When it pays": ("crossover", "order_of_work", "cpu_against_gpu"),
    "Three bottlenecks": ("matmul_precision", "pointwise_chain", "small_layers"),
    "Fusion": ("softmax", "ln_bias_gelu", "attention", "transformer_block", "mixed_precision"),
    "Memory": ("bandwidth", "coalescing", "pinned_copy"),
    "Kernels by hand": ("vector_add", "matmul_by_hand", "reduction", "gradient_mean"),
    "What breaks it": ("graph_breaks", "custom_operator", "training_loop"),
    "Several GPUs": ("two_gpus",),
}
"""The order in which they are shown."""


def folder() -> Path:
    """Where the scenarios are, told from the current folder on where they are in it.

    Raises NotMeasuredError where the package came without them.
    """
    package = Path(__file__).parent
    for place in (package / "_scenarios", package.parent / "scenarios"):
        if place.is_dir():
            here = Path.cwd()
            return place.relative_to(here) if place.is_relative_to(here) else place
    raise NotMeasuredError(
        f"the scenarios are missing: they should be in {package / '_scenarios'}; install"
        " kernelcount anew"
    )


def find(is_anothers: Callable[[Path], bool] = lambda _: False) -> tuple[Scenario, ...]:
    """Every function with a budget beside it, by theme; nothing is imported to find them.

    `is_anothers` tells of a YAML file of the user's own that it is no budget.
    Those in ``scenarios/`` of the current folder come last; there, a name that comes with the tool
    stands for the user's own.
    """
    shipped, own = folder(), Path("scenarios")
    pairs = _pairs(own) if own.is_dir() and not own.samefile(shipped) else set()
    mine = {name for name in pairs if not is_anothers(own / f"{name}.yaml")}
    themed = [(theme, name) for theme, names in THEMES.items() for name in names]
    pairs = _pairs(shipped) - mine
    themed += [("More", name) for name in sorted(pairs - {name for _, name in themed})]
    found = [_read(shipped, name, theme) for theme, name in themed if name in pairs]
    replaced = mine & _pairs(shipped)
    yours = (_read(own, name, "Your own") for name in sorted(mine))
    return (
        *found,
        *(
            replace(y, replaces=str(shipped / f"{y.name}.py")) if y.name in replaced else y
            for y in yours
        ),
    )


def _pairs(place: Path) -> set[str]:
    """The names of the functions in a folder that have a budget beside them."""
    return {path.stem for path in place.glob("*.yaml") if path.with_suffix(".py").is_file()}


def choose(
    names: Sequence[str], is_anothers: Callable[[Path], bool] = lambda _: False
) -> tuple[Scenario, ...]:
    """Those of these names, in the order given; `is_anothers` is that of `find`.

    Raises UsageError with each that there is not, and the nearest name or the file it lacks.
    """
    known = {scenario.name: scenario for scenario in find(is_anothers)}
    names = list(dict.fromkeys(names))
    if missing := [_missing(name, list(known)) for name in names if name not in known]:
        raise UsageError("\n".join([*missing, "kernelcount scenarios lists them"]))
    return tuple(known[name] for name in names)


def _missing(name: str, known: Sequence[str]) -> str:
    """Why there is no scenario of this name."""
    for place in (Path("scenarios"), folder()):
        function, budget, yml = (place / f"{name}{end}" for end in (".py", ".yaml", ".yml"))
        if function.is_file() and budget.is_file():  # which `find` has passed over
            return f"{name} is no scenario yet: {budget} has neither target: nor budget:"
        if function.is_file() and yml.is_file():
            return f"{name} is no scenario yet: {yml} must be named {budget.name}"
        if function.is_file():
            return f"{name} is no scenario yet: {function} has no budget {budget.name} beside it"
        if budget.is_file():
            return f"{name} is no scenario yet: {budget} has no function {function.name} beside it"
    near = difflib.get_close_matches(name, known, n=1)
    return f"there is no scenario {name}" + (f": did you mean {near[0]}?" if near else "")


def _read(place: Path, name: str, theme: str) -> Scenario:
    """What the file says of itself: its docstring's first line, or sentence, is the claim.

    One that cannot be read says so in the place of its claim, and hides no other.
    """
    path, problem = place / f"{name}.py", ""
    try:
        text = ast.get_docstring(ast.parse(path.read_bytes(), path)) or name
    except (OSError, SyntaxError, ValueError) as error:
        text = problem = f"{path}{_problem(error)}"
    claim, teaches = _parted(text)
    return Scenario(
        name=name,
        theme=theme,
        claim=claim,
        teaches=teaches,
        function=str(path),
        budget=str(path.with_suffix(".yaml")),
        problem=problem,
    )


def _parted(text: str) -> tuple[str, str]:
    """The lines of a docstring up to the end of a sentence or an empty one, and those after it."""
    lines = text.splitlines()
    end = next((i for i, line in enumerate(lines) if not line or line.endswith(_ENDS)), len(lines))
    first, rest = lines[: end + 1], lines[end + 1 :]
    return " ".join(" ".join(first).split()), " ".join(" ".join(rest).split())


_ENDS = (".", "!", "?", ":")


def _problem(error: OSError | SyntaxError | ValueError) -> str:
    """What is wrong with a file: ``:2: '(' was never closed``."""
    if isinstance(error, SyntaxError):
        line = f":{error.lineno}" if error.lineno else ""
        return f"{line} cannot be read: {error.msg}"
    said = error.strerror if isinstance(error, OSError) else str(error)
    return f" cannot be read: {said}"
