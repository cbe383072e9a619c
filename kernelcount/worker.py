"""The process in which the user's code runs; outcomes come back as data.

`perform` does a job and tells what happens by messages. It runs here, in a process of its own
(`main`), or in the caller's process; which of the two is `runners`' business.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from kernelcount import __version__
from kernelcount.errors import KernelcountError, NotMeasuredError, UserCodeError
from kernelcount.model import Environment, Job, Note, Outcome, Target, Unmeasured
from kernelcount.traces import saved


class Ready(msgspec.Struct, tag="ready"):
    """The target is loaded and its arguments are made."""

    environment: Environment
    target: Target


class Begin(msgspec.Struct, tag="begin"):
    """A variant begins; `index` counts variants over all sizes."""

    index: int


class Progress(msgspec.Struct, tag="progress"):
    """What is being done, in a few words."""

    text: str


class Done(msgspec.Struct, tag="done"):
    """A variant has ended. `outcome` is as `saved.dump` writes it; `said` is for stderr."""

    index: int
    outcome: msgspec.Raw
    said: str = ""


class Failed(msgspec.Struct, tag="failed"):
    """The job cannot be done at all: an exit code and what to say."""

    code: int
    message: str


class Ended(msgspec.Struct, tag="ended"):
    """The process ends here on its own account, whether or not steps are left."""


Message = Ready | Begin | Progress | Done | Failed | Ended
Send = Callable[[Message], None]


@dataclass(frozen=True, slots=True)
class Step:
    """One variant at one size."""

    index: int
    variant: str
    size: int | None
    trace: str | None


def steps(job: Job) -> list[Step]:
    """The variants of a job in order, size by size."""
    sizes: tuple[int | None, ...] = job.sizes or (None,)
    pairs = [(size, variant) for size in sizes for variant in job.variants]
    traces = job.traces or (None,) * len(pairs)
    return [Step(i, v, s, traces[i]) for i, (s, v) in enumerate(pairs)]


def perform(job: Job, first: int, send: Send) -> None:
    """Do the job from step `first` on, until its end or the first variant that fails.

    After a failure the process may be poisoned (a CUDA error sticks), so the rest is for another.
    """
    try:
        session = _Session(job)
        for step in steps(job)[first:]:
            send(Begin(step.index))
            subject = session.subject(step.size)
            send(Ready(subject.environment, subject.target))
            outcome, said = session.measure(step, subject, send)
            send(Done(step.index, msgspec.Raw(saved.dump([outcome])), said))
            if isinstance(outcome, Unmeasured) and outcome.seen is None:
                return
    except KernelcountError as error:
        send(Failed(error.code, str(error)))
    except KeyboardInterrupt:
        send(Failed(130, "interrupted: the function raised KeyboardInterrupt"))


class _Session:
    """A job's target and device; subjects are made from it, one a size."""

    def __init__(self, job: Job) -> None:
        from kernelcount import devices, target
        from kernelcount.paper import gpu

        self.job = job
        self.device: Any
        self.device, self.device_name = devices.choose(job.device)
        if self.device.kind == "paper":
            self.device = gpu.of_card(job.gpu, traced=bool(job.traces))
        self.loaded = target.load(job.spec)
        self.environment = replace(self.device.environment(), kernelcount=__version__)
        if job.evaluate:
            self._evaluate()
        self._subjects: dict[int | None, Any] = {}

    def _evaluate(self) -> None:
        import torch

        module = self.loaded.function
        if not isinstance(module, torch.nn.Module):
            raise KernelcountError("--eval: the target is not an nn.Module")
        module.eval()

    def subject(self, size: int | None) -> Any:
        """The target at one size, its arguments made. Raises KernelcountError where that fails."""
        from kernelcount.paper.values import ValueNeeded

        if size not in self._subjects:
            self._subjects.clear()  # the arguments of another size would only take memory
            try:
                self._subjects[size] = self._make(size)
            except ValueNeeded as needed:
                return self._with_values(size, needed.op)
        return self._subjects[size]

    def _with_values(self, size: int | None, op: str) -> Any:
        """The same with real values behind the shapes, since `op` asks for one."""
        self.device.use_values(op)
        self._subjects.clear()
        self._subjects[size] = self._make(size)
        return self._subjects[size]

    def _make(self, size: int | None) -> Any:
        from kernelcount import inputs
        from kernelcount.capture import Subject

        try:
            with self.device.prepare():
                self._move_module()
                arguments = self._arguments(size, self.job.seed)
        except KernelcountError:
            raise
        except Exception as error:  # noqa: BLE001  the user's maker may raise anything
            raise _explained(error, size, "making the inputs") from None
        return Subject(
            target=Target(self.job.spec, inputs.describe(arguments)),
            arguments=arguments,
            remake=lambda seed: self._arguments(size, seed),
            device=self.device,
            environment=self.environment,
            seed=self.job.seed,
            backward=self.job.backward,
            no_grad=self.job.no_grad,
            notes=tuple(_global_notes()),
        )

    def _move_module(self) -> None:
        import torch

        if isinstance(self.loaded.function, torch.nn.Module):
            self.loaded.function.to(self.device_name)

    def _arguments(self, size: int | None, seed: int) -> Any:
        import torch

        from kernelcount import inputs, target

        job = self.job
        options = inputs.InputOptions(
            size=size, specs=job.inputs, dtype=job.dtype, device=self.device_name, seed=seed
        )
        maker = None
        if not job.inputs:
            if job.maker is not None:
                maker = target.load(_beside(job.spec, job.maker)).function
            else:
                maker = inputs.find_maker(self.loaded.module)
        arguments = inputs.build(self.loaded.function, options, maker)
        if job.backward and maker is None:
            for value in (*arguments.args, *arguments.kwargs.values()):
                if isinstance(value, torch.Tensor) and value.is_floating_point():
                    value.requires_grad_()
        return arguments

    def measure(self, step: Step, subject: Any, send: Send) -> tuple[Outcome, str]:
        """The outcome of one variant, and what is to be said of it on stderr."""
        from kernelcount import target, variants

        variant = variants.parse(step.variant)
        with tempfile.TemporaryDirectory(prefix="kernelcount-") as folder:
            try:
                function = self.loaded.function
                if variant.spec is not None:
                    function = target.load(variant.spec).function
                outcome = self._count(step, subject, variant, function, Path(folder), send)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001  whatever user code raises costs a variant
                failure = _explained(error, step.size, variant.name)
                code = failure.code if variant.kind == "eager" else 3
                return Unmeasured(variant.name, str(failure).splitlines()[0], None, code), str(
                    failure
                )
            if step.trace is not None:
                _keep(Path(folder) / "trace.json", Path(step.trace))
        return outcome, ""

    def _count(
        self, step: Step, subject: Any, variant: Any, function: Any, folder: Path, send: Send
    ) -> Outcome:
        """Count; on paper once more, with values, where the function asks for one."""
        from kernelcount import capture
        from kernelcount.paper.values import ValueNeeded

        def say(text: str) -> None:
            send(Progress(text))

        try:
            return capture.measure(subject, variant, function, folder, say)
        except ValueNeeded as needed:
            subject = self._with_values(step.size, needed.op)
            return capture.measure(subject, variant, function, folder, say)


def _beside(spec: str, name: str) -> str:
    """A name in the target's own file, unless it says another."""
    return name if ":" in name else f"{spec.rpartition(':')[0]}:{name}"


def _explained(error: BaseException, size: int | None, where: str) -> KernelcountError:
    """The error as one of ours: a line for what runs out or is missing, else the user's frames."""
    from kernelcount import memory, target

    text = str(error)
    if isinstance(error, KernelcountError):
        return error
    if memory.is_out_of_memory(error):
        return NotMeasuredError(f"{where}: {memory.explain(error, size)}")
    if any(words in text for words in _NEEDS_CUDA):
        return NotMeasuredError(f"{where}: this needs CUDA, and there is none here ({text})")
    if isinstance(error, SystemExit):
        return UserCodeError(f"{where}: the function called sys.exit({error.code!r})")
    first = text.strip().splitlines()[0] if text.strip() else ""
    kind = type(error).__name__
    return UserCodeError(f"{where}: raised {kind}: {first}\n{target.user_traceback(error)}")


_NEEDS_CUDA = (
    "Torch not compiled with CUDA enabled",
    "Found no NVIDIA driver",
    "requires CUDA support",
    "not linked with support for cuda",
)


def _global_notes() -> list[Note]:
    """What the user's module set for the whole process, where it bears on the count."""
    import torch

    notes: list[Note] = []
    if (dtype := torch.get_default_dtype()) is not torch.float32:
        notes.append(Note("default-dtype", f"the module set torch's default dtype to {dtype}"))
    if not torch.is_grad_enabled():
        notes.append(Note("grad-disabled", "the module switched gradients off"))
    return notes


def _keep(trace: Path, wanted: Path) -> None:
    """The raw trace where the user wants it, compressed if its name says so."""
    import gzip

    try:
        wanted.parent.mkdir(parents=True, exist_ok=True)
        if wanted.suffix == ".gz":
            with trace.open("rb") as source, gzip.open(wanted, "wb") as out:
                shutil.copyfileobj(source, out)
        else:
            shutil.copyfile(trace, wanted)
    except OSError as error:
        raise KernelcountError(f"--trace {wanted}: {error.strerror}") from None


def main(control: int, results: int, job: bytes, first: int) -> None:
    """The worker process: fd 1 is the parent's stderr already, and stdin is empty.

    It ends as soon as `control` does, which is when the parent is gone, however it went.
    """
    out = os.fdopen(results, "wb", buffering=0)
    encoder = msgspec.json.Encoder()
    threading.Thread(target=_end_with, args=(control,), daemon=True).start()

    def send(message: Message) -> None:
        _write(out, encoder.encode(message).replace(b"\n", b"") + b"\n")

    perform(msgspec.json.decode(job, type=Job), first, send)
    send(Ended())
    sys.stdout.flush()


def _write(out: BinaryIO, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[out.write(view) :]


def _end_with(control: int) -> None:
    while os.read(control, 1):
        pass
    os._exit(130)
