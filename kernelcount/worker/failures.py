"""How the end of what the user's code did is worded."""

from __future__ import annotations

from dataclasses import dataclass, replace

import msgspec

from kernelcount.errors import KernelcountError, NotMeasuredError, UserCodeError
from kernelcount.model import Unmeasured
from kernelcount.traces import saved
from kernelcount.worker.messages import Done, Step

_LONGEST_LINE = 300  # characters of an exception's text in a reason
_LONGEST_TEXT = 8000  # characters of an exception with its frames
_MOST_LINES = 80

_NO_CUDA = ("Torch not compiled with CUDA enabled", "Found no NVIDIA driver on your system")
_NOT_BUILT = {  # what torch.utils.cpp_extension says
    "CUDA_HOME environment variable is not set": "no nvcc was found to build CUDA C: install the"
    " CUDA toolkit, or name its folder by CUDA_HOME",
    "Ninja is required to load C++ extensions": "ninja, which builds CUDA C, is missing: pip"
    " install ninja",
}


@dataclass(frozen=True, slots=True)
class Failure:
    """Why something could not be done: a line, the text with the user's frames, an exit code.

    `raised`: it is 3, as eager is not at fault, and yet the variant raised.
    """

    reason: str
    said: str
    code: int
    hopeless: bool = False
    raised: bool = False

    def done(self, step: Step) -> Done:
        """The end of a step that failed so."""
        outcome = Unmeasured(step.variant, self.reason, None, self.code, self.raised)
        rest = f"not tried: {step.variant} asks for far more memory than there is"
        done = Done(step.index, msgspec.Raw(saved.dump([outcome])), self.said)
        return msgspec.structs.replace(done, rest=rest) if self.hopeless else done

    def while_(self, doing: str) -> Failure:
        """The same, with what was being done in front."""
        return replace(self, reason=f"{doing}: {self.reason}", said=f"{doing}: {self.said}")

    def error(self) -> KernelcountError:
        """The same as an error that ends the whole job."""
        return KernelcountError(self.said, self.code)


def failure_of(error: BaseException, size: int | None) -> Failure:
    """A line for what runs out or is missing; else the user's exception with the user's frames."""
    from kernelcount import memory, target

    if isinstance(error, KernelcountError):
        text = printable(str(error))
        return Failure(_first_line(text), text, error.code)
    if memory.is_out_of_memory(error):
        text = memory.explain(error, size)
        return Failure(text, text, NotMeasuredError.code, memory.is_hopeless(error))
    text = _text_of(error)
    if any(sign in text for sign in _NO_CUDA):
        text = f"this needs CUDA, and there is none here ({_first_line(text)})"
        return Failure(text, text, NotMeasuredError.code)
    if missing := next((said for sign, said in _NOT_BUILT.items() if sign in text), None):
        return Failure(missing, missing, NotMeasuredError.code)
    line = f"raised {type(error).__name__}: {_first_line(text)}".removesuffix(": ")
    # torch.compile's errors say in their first line only of which kind they are.
    if explained := next((x for x in text.splitlines() if x.startswith("  Explanation: ")), None):
        line = _first_line(f"{line}: {explained.removeprefix('  Explanation: ')}")
    if isinstance(error, SystemExit):
        code = "" if error.code is None else _first_line(printable(repr(error.code)))
        line = f"the function called sys.exit({code})"
    frames = _shortened(printable(target.user_traceback(error)))
    return Failure(line, f"{line}\n{frames}", UserCodeError.code)


def _text_of(error: BaseException) -> str:
    try:
        return printable(str(error))
    except Exception:  # noqa: BLE001  the user's own exception class
        return "(its __str__ fails)"


def printable(text: str) -> str:
    """The text with halves of surrogate pairs, which no message can carry, made visible."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _first_line(text: str) -> str:
    line = next((line for line in text.splitlines() if line.strip()), "").strip()
    return line if len(line) <= _LONGEST_LINE else line[:_LONGEST_LINE] + "..."


def _shortened(text: str) -> str:
    """The beginning and the end of a text that nobody would read whole."""
    lines = text.splitlines()
    if len(lines) > _MOST_LINES:
        half = _MOST_LINES // 2
        left_out = f"... {len(lines) - 2 * half} lines left out ..."
        text = "\n".join((*lines[:half], left_out, *lines[-half:]))
    if len(text) > _LONGEST_TEXT:
        half = _LONGEST_TEXT // 2
        left_out = f"... {len(text) - 2 * half} characters left out ..."
        text = f"{text[:half]}\n{left_out}\n{text[-half:]}"
    return text
