"""Have a process of its own look at this machine, so that this one imports no torch.

It says what it finds on a pipe, a line of JSON each: what it is at, a check, what the GPU reaches,
what was recorded, why it failed, that it is done. Whatever else it prints goes to stderr.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from kernelcount import boot
from kernelcount.errors import NotMeasuredError
from kernelcount.model import Check, Diagnosis, Rates

_START = """
from kernelcount.examination.__main__ import main
main({descriptor}, {wanted!r})
"""


def examine(wanted: Path | None, progress: Callable[[str], None]) -> Diagnosis:
    """Every check, the rates of the GPU, and with `wanted` an atlas recorded there."""
    reading, writing = os.pipe()
    start = _START.format(
        descriptor=writing,
        wanted="" if wanted is None else str(wanted.absolute()),
    )
    process = subprocess.Popen(
        boot.command(start),
        stdin=subprocess.DEVNULL,
        stdout=2,
        pass_fds=(writing,),
        start_new_session=True,
        env=boot.environment(),
    )
    os.close(writing)
    try:
        with os.fdopen(reading, encoding="ascii") as pipe:
            diagnosis, done = _listened(pipe, progress)
        return diagnosis if done else _cut_short(diagnosis, process.wait())
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _listened(lines: Iterable[str], progress: Callable[[str], None]) -> tuple[Diagnosis, bool]:
    """What was said until the pipe's end, and whether all was said."""
    diagnosis = Diagnosis()
    for line in lines:
        kind, value = json.loads(line)
        if kind == "progress":
            progress(value)
        elif kind == "check":
            diagnosis = replace(diagnosis, checks=(*diagnosis.checks, Check(**value)))
        elif kind == "rates":
            diagnosis = replace(diagnosis, rates=_rates(value))
        elif kind in ("recorded", "unrated", "kept"):
            diagnosis = replace(diagnosis, **{kind: value})
        elif kind == "failed":
            diagnosis = replace(diagnosis, code=value[0], said=value[1])
        else:
            return diagnosis, True
    return diagnosis, False


def _rates(value: Any) -> Rates:
    from kernelcount.conclusions import rates  # which loads msgspec

    return rates.from_plain(value)


def _cut_short(diagnosis: Diagnosis, code: int) -> Diagnosis:
    """What was found before the process died."""
    how = f"ended with exit code {code}" if code >= 0 else f"died of signal {-code}"
    done = diagnosis.checks[-1].name if diagnosis.checks else "nothing"
    said = f"the process that looks {how}; the last check done is: {done}"
    return replace(diagnosis, code=NotMeasuredError.code, said=said)
