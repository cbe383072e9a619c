"""What is counted at each size: the target with its arguments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from kernelcount.errors import NotMeasuredError, UsageError
from kernelcount.model import Environment, Note, Target
from kernelcount.worker.code import Code
from kernelcount.worker.failures import Failure, failure_of, printable
from kernelcount.worker.messages import Progress, Send, Step

if TYPE_CHECKING:
    from kernelcount.capture import Subject
    from kernelcount.inputs import Arguments


class Subjects:
    """Makes them, once a size.

    `name` is torch's of the device; `late`: what the module asks of the compiler when that does
    not listen any more. Raises UsageError where nothing depends on the sizes.
    """

    def __init__(
        self, code: Code, device: Any, name: str, environment: Environment, late: Sequence[str],
        send: Send,
    ) -> None:  # fmt: skip
        self.code, self.job, self.in_hand = code, code.job, code.in_hand
        self.device, self.device_name, self.environment = device, name, environment
        self.send, self._late = send, late
        self._idle_size = code.idle_size()
        self._subjects: dict[int | None, Subject] = {}

    def of(self, step: Step) -> Subject | Failure:
        """The target at one size with its arguments, or why they could not be made."""
        size = step.size
        if size not in self._subjects:
            self._subjects.clear()  # the arguments of another size would only take memory
            self.send(Progress("making the inputs"))
            try:
                self.made(size)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # the user's maker may raise anything
                if self.in_hand is not None:
                    raise
                failure = failure_of(error, size)
                if not isinstance(error, UsageError | NotMeasuredError):
                    failure = failure.while_("making the inputs")
                if len(self.job.sizes) <= 1:
                    raise failure.error() from None
                return failure
        return self._subjects[size]

    def made(self, size: int | None) -> Subject:
        """The same, where that raises what the user's maker raises."""
        if size not in self._subjects:
            self._subjects[size] = self._make(size)
        return self._subjects[size]

    def _make(self, size: int | None) -> Subject:
        from kernelcount import inputs
        from kernelcount.capture import Subject

        with self.device.prepare():
            self.code.place(self.device_name)
            arguments = self._arguments(size, self.job.seed)
        on_paper = self.device.kind == "paper"
        described = tuple(map(printable, inputs.describe(arguments)))
        return Subject(
            target=Target(printable(self.job.spec), described),
            arguments=arguments,
            remake=lambda seed: self._arguments(size, seed),
            device=self.device,
            environment=self.environment,
            seed=self.job.seed,
            backward=self.job.backward,
            no_grad=self.job.no_grad,
            seconds=self.job.seconds,
            reference=self.job.reference,
            cold=self.job.cold,
            explain=self.job.explain,
            notes=(
                *_global_notes("the module" if self.in_hand is None else "the caller"),
                *self._late_notes(),
                *self._idle_size,
                *self._chosen_notes(),
                *(self.device.value_notes() if on_paper else ()),
            ),
        )

    def _late_notes(self) -> Iterator[Note]:
        """What the module asks of the compiler when that does not listen any more."""
        if self._late:
            names = ", ".join(self._late)
            detail = f"the module sets {names}, which torch's compiler had read before: not heeded"
            yield Note("late-environment", detail)

    def _chosen_notes(self) -> list[Note]:
        """Why this is on paper, where a GPU is here that cannot be counted on."""
        import torch

        chosen = self.job.device is None and self.device.kind == "paper"
        if not (chosen and torch.backends.mps.is_available()):
            return []
        detail = (
            "MPS keeps no record of its kernels: these are an "
            f"{self.environment.device}'s, on paper, and not this GPU's"
        )
        return [Note("mps", detail)]

    def _arguments(self, size: int | None, seed: int) -> Arguments:
        from kernelcount import inputs

        job = self.job
        if self.in_hand is not None and self.in_hand.has_arguments:
            return self._prepared(self.in_hand.arguments(again=seed != job.seed))
        options = inputs.InputOptions(
            size=size, specs=job.inputs, dtype=job.dtype, device=self.device_name, seed=seed
        )
        arguments = inputs.build(self.code.function, options, self.code.maker)
        return self._prepared(arguments)

    def _prepared(self, arguments: Arguments) -> Arguments:
        """The arguments, leaves of what is to be differentiated where a backward pass follows."""
        from kernelcount import inputs

        if not self.job.backward:
            return arguments
        given = self.in_hand is not None and self.in_hand.has_arguments
        made_here = self.code.maker is None and not given
        return inputs.Arguments(
            tuple(_leaf(value, requires_grad=made_here) for value in arguments.args),
            {k: _leaf(value, requires_grad=made_here) for k, value in arguments.kwargs.items()},
        )


def _leaf(value: Any, *, requires_grad: bool) -> Any:
    """An argument for a backward pass: it ends here, and not in how the argument was made."""
    import torch

    if not isinstance(value, torch.Tensor):
        return value
    if not value.is_leaf:
        return value.detach().requires_grad_(value.requires_grad)
    if requires_grad and value.is_floating_point():
        value.requires_grad_()
    return value


def _global_notes(who: str) -> list[Note]:
    """What `who` set for the whole process, where it bears on the count."""
    import torch

    notes: list[Note] = []
    if (dtype := torch.get_default_dtype()) is not torch.float32:
        notes.append(Note("default-dtype", f"{who} set torch's default dtype to {dtype}"))
    if not torch.is_grad_enabled():
        notes.append(Note("grad-disabled", f"{who} switched gradients off"))
    return notes
