"""The user's code, imported: what each variant calls, and what makes the arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelcount.errors import KernelcountError, NotMeasuredError, UsageError, UserCodeError
from kernelcount.model import Job, Note
from kernelcount.worker.failures import Failure, failure_of, printable

if TYPE_CHECKING:
    from kernelcount.inhand import InHand
    from kernelcount.variants import Variant


class Code:
    """The functions of a job: the target's, its maker, and those that variants name.

    `lost`: the variants whose function could not be imported. On paper, `device` is the card that
    the import finds. Raises KernelcountError where there is nothing to count.
    """

    def __init__(
        self, job: Job, in_hand: InHand | None, device: Any, asked: Sequence[Variant]
    ) -> None:
        self.job, self.in_hand, self._device = job, in_hand, device
        # Before the user's code may change the folder.
        others = {v.name: _beside(job.spec, v.spec) for v in asked if v.spec is not None}
        maker = None if job.maker is None else _maker_beside(job.spec, job.maker)
        self._import([v.name for v in asked], others, maker)

    def _import(self, names: list[str], others: dict[str, str], maker: str | None) -> None:
        """Import the user's code: the target, its maker, and what `others` names by variant."""
        held: dict[str, Callable[..., Any]] = {}
        if self.in_hand is None:
            loaded = self._load(self.job.spec)
            self.function, self.maker = loaded.function, self._find_maker(maker, loaded.module)
        else:
            self.function, self.maker = self.in_hand.function, self.in_hand.maker
            held = self.in_hand.others
        self.functions: dict[str, Callable[..., Any]] = {}
        self.lost: dict[str, Failure] = {}
        for name in names:
            if name not in others:
                self.functions[name] = self.function
            elif name in held:
                self.functions[name] = held[name]
            else:
                self._import_other(name, others[name], alone=len(names) == 1 or bool(self.in_hand))

    def _import_other(self, name: str, spec: str, *, alone: bool) -> None:
        """Import a variant's function: one that cannot be imported costs that variant alone."""
        try:
            self.functions[name] = self._load(spec).function
        except KernelcountError as error:
            if alone:
                raise
            cause = error.__cause__ if isinstance(error, UserCodeError) else None
            own = cause is not None and not isinstance(cause, SystemExit)
            failure = failure_of(cause if own and cause else error, None)
            self.lost[name] = failure.while_(f"importing {printable(name)}") if own else failure

    def _load(self, spec: str) -> Any:
        from kernelcount import target

        try:
            return target.load(spec)
        except UserCodeError as error:
            from kernelcount.paper import cuda

            cause = error.__cause__ or error
            if self._device is not None:
                cause = cuda.undone(cause) or cause
            failure = failure_of(cause, None)
            if failure.code == NotMeasuredError.code:
                raise NotMeasuredError(f"importing {spec}: {failure.reason}") from None
            raise

    def _find_maker(self, named: str | None, module: Any) -> Callable[..., Any] | None:
        from kernelcount import inputs

        if self.job.inputs:
            return None
        if named is None:
            return inputs.find_maker(module)
        maker: Callable[..., Any] = self._load(named).function
        return maker

    def evaluate(self) -> None:
        """Have modules in eval mode, where that was asked for. Raises UsageError for a function."""
        from kernelcount.state import module_of

        if not self.job.evaluate:
            return
        if module_of(self.function) is None:
            raise UsageError("--eval: the target is not an nn.Module, so it has no eval mode")
        for function in self.functions.values():
            if (module := module_of(function)) is not None:
                module.eval() if self.in_hand is None else self.in_hand.evaluate(module)

    def place(self, device: str) -> None:
        """Have the modules, or all that the caller's functions reach, on the device."""
        from kernelcount.state import module_of

        if self.in_hand is not None:
            self.in_hand.carry(device)
            self.function = self.in_hand.here(self.function)
            self.functions = {n: self.in_hand.here(f) for n, f in self.functions.items()}
            return
        for function in self.functions.values():
            if (module := module_of(function)) is not None:
                module.to(device)

    def idle_size(self) -> list[Note]:
        """A note where nothing depends on the size that is given. Raises UsageError for several."""
        from kernelcount import inputs

        given = self.in_hand is not None and self.in_hand.has_arguments
        options = inputs.InputOptions(specs=self.job.inputs)
        if not self.job.sizes or given:
            return []
        if inputs.heeds_size(self.function, options, self.maker):
            return []
        what = "no --input has an N" if self.job.inputs else "the function takes no arguments"
        if self.maker is not None and inputs.takes_something(self.function):
            what = f"{getattr(self.maker, '__name__', 'the maker')}() takes no n and no size"
        if len(self.job.sizes) > 1:
            raise UsageError(f"--size: nothing depends on it, as {what}: all would be the same")
        return [Note("idle-size", f"nothing depends on --size, as {what}")]


def _beside(target: str, spec: str) -> str:
    """A spec whose file is relative to the current folder, or else to that of the target's file."""
    place, _, name = spec.rpartition(":")
    if not place.endswith(".py"):
        return spec
    near = Path(target.rpartition(":")[0]).parent / place
    file = near if near.is_file() and not Path(place).is_file() else Path(place)
    return f"{file.absolute()}:{name}"


def _maker_beside(target: str, name: str) -> str:
    """A maker's spec: a bare name is one of the target's own file."""
    return _beside(target, name if ":" in name else f"{target.rpartition(':')[0]}:{name}")
