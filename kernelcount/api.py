"""The functions of the Python API: options in, a frozen result out.

A function that the caller has in hand is counted in the caller's process, which is left as it was;
one that is named by a string, in a process of its own, as on the command line.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelcount import keywords
from kernelcount.errors import NotMeasuredError, UsageError
from kernelcount.model import Job
from kernelcount.results import Checking, Comparison, Count, Reading, counts_of

if TYPE_CHECKING:
    from kernelcount.budgets.budget import Budget
    from kernelcount.budgets.checking import Options

Function = Callable[..., object]

_OPTIONS = """
    Options, all of them keywords:

    - `kwargs`: keyword arguments of `fn`, as functools.partial gives them, too. ``{}``: it is
      called with nothing, although it would take something.
    - `device`: ``cuda``, ``cuda:1``, ``xpu``, ``cpu`` or ``paper``. Default: the GPU here; without
      one, paper. `gpu`: the card that paper is for, by default H200.
    - `backward`: go backward too; `no_grad`: call it under torch.no_grad(); `evaluate`: put the
      module in eval mode meanwhile.
    - `seconds`: time calls in turn and compare results for so long; 0: don't. `reference`: hold
      results against the same in float64. `cold`: time with inputs that no cache holds.
    - `size`, `inputs` (specs such as ``f32[N,1024]``), `maker` (a function that makes them),
      `dtype` and `seed`: for arguments that are made, where none are given.
    - `timeout`: seconds for each variant. For a target that is named by a string.
"""


def count(
    fn: Function | str,
    /,
    *args: object,
    kwargs: Mapping[str, object] | None = None,
    variant: str | Function = "eager",
    device: str | None = None,
    gpu: str | None = None,
    backward: bool = False,
    no_grad: bool = False,
    evaluate: bool = False,
    seconds: float = 0.0,
    reference: bool = False,
    cold: bool = False,
    size: float | str | None = None,
    inputs: Sequence[str] = (),
    maker: Function | str | None = None,
    dtype: str | None = None,
    seed: int = 0,
    timeout: float | None = None,
) -> Count:
    """Count what one steady call of `fn` launches: a function, a module, or its name in a string.

    `variant`: how it is run, spelt as on the command line (``compile:reduce-overhead``); or a
    function, another implementation, which is run as it is. By default ``eager``: uncompiled, also
    where `fn` is compiled already, which a note says then. ``variant=fn`` runs it as it is
    compiled.

    What `fn` raises is raised as it is. Raises UsageError where the question is wrong. What cannot
    be counted is a result that says why, in `reason`; its figures raise NotMeasuredError.
    """
    options = {k: v for k, v in locals().items() if k not in ("fn", "args", "kwargs", "variant")}
    keywords.check(kwargs=kwargs, variant=variant, **options)
    return _counted(fn, args, kwargs, (variant,), options)[1][0]


def compare(
    fn: Function | str,
    /,
    *args: object,
    kwargs: Mapping[str, object] | None = None,
    variants: Sequence[str | Function] = ("eager", "compile"),
    device: str | None = None,
    gpu: str | None = None,
    backward: bool = False,
    no_grad: bool = False,
    evaluate: bool = False,
    seconds: float = 1.0,
    reference: bool = False,
    cold: bool = False,
    size: float | str | None = None,
    inputs: Sequence[str] = (),
    maker: Function | str | None = None,
    dtype: str | None = None,
    seed: int = 0,
    timeout: float | None = None,
) -> Comparison:
    """Count ways to run `fn` side by side: eager beside torch.compile, or as `variants` say.

    A variant is spelt as on the command line (``compile:reduce-overhead``), or is a function:
    another implementation of the same. What `fn` or such a function raises is raised as it is; by
    what torch.compile fails where eager worked, that variant is unmeasured, and has it in `error`.
    """
    options = {k: v for k, v in locals().items() if k not in ("fn", "args", "kwargs", "variants")}
    keywords.check(kwargs=kwargs, variants=variants, **options)
    answer, counts = _counted(fn, args, kwargs, tuple(variants), options)
    return Comparison(answer.report, answer.said, counts=counts)


for _function in (count, compare):
    _function.__doc__ = f"{_function.__doc__}{_OPTIONS}"


def read(
    path: str | os.PathLike[str], /, *more: str | os.PathLike[str], region: str | None = None
) -> Reading:
    """Count what recorded traces (Kineto, also .gz) and saved captures hold.

    `region` keeps the kernels that were launched while an annotation of that name was open. Of
    several files, one that cannot be read is a result with the reason. Raises UnreadableError where
    there is one file and nothing in it can be read.
    """
    from kernelcount import app

    keywords.check(region=region)
    _check_paths(path, *more)
    answer = app.read([Path(p) for p in (path, *more)], region, lambda *_: None)
    return Reading(answer.report, answer.said, counts=counts_of(answer, {}))


def check(
    *paths: str | os.PathLike[str],
    device: str | None = None,
    gpu: str | None = None,
    seconds: float = 1.0,
    timeout: float | None = None,
    update: bool = False,
    allow_undecided: bool = False,
) -> Checking:
    """Hold the budgets (YAML) in these files and folders; by default as the command line does.

    Each target runs in a process of its own. It is true where all limits are kept, and no limit
    that could not be decided is. `device` and `gpu` outrank what budgets say; calls are timed for
    `seconds` where a limit is about it; `timeout` is in seconds, for each variant. `update` writes
    what was launched to ``kernelcount.lock`` beside the budgets.

    Raises UsageError that says what is wrong in which file.
    """
    from kernelcount import app
    from kernelcount.budgets import checking

    asked = {"timeout": timeout, "update": update, "allow_undecided": allow_undecided}
    keywords.check(device=device, gpu=gpu, seconds=seconds, **asked)
    _check_paths(*paths)
    options = checking.Options(device, gpu, timeout, seconds, update, allow_undecided)
    with keywords.spoken_of():
        return held(app.budgets([Path(p) for p in paths]), options)


def _check_paths(*paths: object) -> None:
    for path in paths:
        keywords.check(path=path)


def held(budgets: Sequence[Budget], options: Options) -> Checking:
    """Budgets that are read already, held in processes of their own. Raises UsageError."""
    from kernelcount import ahead, app, warm
    from kernelcount.budgets import checking

    said: list[str] = []
    with ahead.Ahead(checking.jobs(budgets, options), warm.in_fork) as runner:
        checked = app.check(
            budgets,
            runner,
            lambda _: None,
            options,
            lambda _, texts: said.extend(texts),
            warm.beside,
        )
    return Checking(checked, tuple(said))


@keywords.spoken_of()
def _counted(
    fn: Function | str,
    args: tuple[object, ...],
    kwargs: Mapping[str, object] | None,
    variants: tuple[str | Function, ...],
    options: dict[str, Any],
) -> tuple[Any, tuple[Count, ...]]:
    """The answer to a job, and each of its outcomes as a result."""
    if not variants:
        raise UsageError("variants: name at least one, such as 'eager'")
    if isinstance(fn, str):
        answer = _by_name(fn, args, kwargs, variants, options)
        return answer, counts_of(answer, {})
    if not callable(fn):
        said = keywords.shown(fn)
        raise UsageError(f"{said} cannot be called: give a function, a module, or a name of one")
    return _in_hand(fn, args, kwargs, variants, options)


def _by_name(
    spec: str,
    args: tuple[object, ...],
    kwargs: Mapping[str, object] | None,
    variants: tuple[str | Function, ...],
    options: dict[str, Any],
) -> Any:
    """A target that a string names, in a process of its own."""
    from kernelcount import app, runners
    from kernelcount.beside import OnPaper

    if args or kwargs:
        raise UsageError(f"{spec!r} runs in another process: name what it takes by inputs or maker")
    names = [v for v in variants if isinstance(v, str)]
    if len(names) < len(variants) or callable(options["maker"]):
        raise UsageError(f"{spec!r} runs in another process: name functions by strings, too")
    job = _job(spec, tuple(names), options, options["maker"])
    with OnPaper(job) as beside:
        return app.run(job, runners.in_worker, lambda _: None, beside)


def _in_hand(
    fn: Function,
    args: tuple[object, ...],
    kwargs: Mapping[str, object] | None,
    variants: tuple[str | Function, ...],
    options: dict[str, Any],
) -> tuple[Any, tuple[Count, ...]]:
    """A function of this process."""
    from kernelcount import app, runners
    from kernelcount.inhand import InHand, as_it_was, named
    from kernelcount.inputs import Arguments

    if options["timeout"] is not None:
        raise UsageError(
            "timeout: a call in your own process cannot be ended; name the function by a string,"
            " 'path/to/file.py:name', and it has one of its own"
        )
    given = None if kwargs is None and not args else Arguments(args, dict(kwargs or {}))
    made = {k: options[k] for k in ("size", "inputs", "maker", "dtype") if options[k]}
    if given and made:
        raise UsageError(f"{', '.join(made)}: the arguments are given, so that none are made")
    maker = options["maker"]
    if isinstance(maker, str):
        raise UsageError(f"maker: give the function {maker!r} itself")
    names, others = _named(variants, named)
    target = InHand(fn, given, others=others, maker=maker)
    job = _job(named(fn), names, options, None)
    with as_it_was():
        _refuse_paper_beside_a_gpu(job)
        runner = partial(runners.in_process, in_hand=target)
        answer = app.run(job, runner, lambda _: None, in_hand=True)
        return answer, counts_of(answer, target.errors)


def _named(
    variants: tuple[str | Function, ...], named: Callable[[Function], str]
) -> tuple[tuple[str, ...], dict[str, Function]]:
    """The names of all variants, in order, and the functions among them by theirs."""
    names: list[str] = []
    functions: dict[str, Function] = {}
    for variant in variants:
        if isinstance(variant, str):
            names.append(variant)
            continue
        if not callable(variant):
            raise UsageError(f"variants: {keywords.shown(variant)} is no name and no function")
        name = first = named(variant)
        while name in functions:
            name = f"{first}-{names.count(first) + len(functions)}"
        names.append(name)
        functions[name] = variant
    return tuple(names), functions


def _job(spec: str, variants: tuple[str, ...], options: dict[str, Any], maker: str | None) -> Job:
    from kernelcount.inputs import parse_size

    size, inputs = options["size"], options["inputs"]
    plain = ("device", "gpu", "backward", "no_grad", "evaluate", "seconds", "reference", "cold")
    return Job(
        spec=spec,
        sizes=() if size is None else (parse_size(_text(size)),),
        inputs=tuple(inputs),
        maker=maker,
        variants=variants,
        **{name: options[name] for name in (*plain, "dtype", "seed", "timeout")},
    )


def _text(size: float | str) -> str:
    """A size as the command line has it; ``1e8`` is a float in Python."""
    if isinstance(size, str):
        return size
    return str(int(size)) if float(size).is_integer() else str(size)


def _refuse_paper_beside_a_gpu(job: Job) -> None:
    """Raises NotMeasuredError where paper was asked for, and torch could reach a GPU meanwhile."""
    from kernelcount.worker.device import may_have_a_gpu

    asked = job.device == "paper" or job.gpu is not None
    if asked and may_have_a_gpu():
        raise NotMeasuredError(
            "on paper nothing may touch a GPU, and this process has one: name the function by a"
            " string, 'path/to/file.py:name', which is counted in a process of its own, or set"
            " CUDA_VISIBLE_DEVICES to nothing before Python starts"
        )
