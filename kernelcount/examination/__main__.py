"""The process that looks, and records; see `child` for what it is told and what it says."""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kernelcount.errors import KernelcountError, NotMeasuredError

Say = Callable[[str, Any], None]


def main(descriptor: int, wanted: str) -> None:
    """Look, measure, and record an atlas at `wanted` if it names a file; all as lines of JSON."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    with os.fdopen(descriptor, "w", encoding="ascii", buffering=1) as pipe:

        def say(kind: str, value: Any) -> None:
            pipe.write(f"{json.dumps([kind, value])}\n")

        try:
            _examine(say, Path(wanted) if wanted else None)
        except KernelcountError as error:
            say("failed", [error.code, str(error)])
        say("done", None)


def _examine(say: Say, wanted: Path | None) -> None:
    say("progress", "importing torch")
    from kernelcount.examination import checks

    with tempfile.TemporaryDirectory(prefix="kernelcount-") as folder:
        for check in checks.all_checks(Path(folder)):
            say("check", asdict(check))
        _measure(say)
        if wanted is not None:
            _record(say, wanted, Path(folder))


def _measure(say: Say) -> None:
    """The rates of the GPU here, if there is one; and keep them."""
    from kernelcount.conclusions import rates
    from kernelcount.examination import checks, microbenchmarks

    gpu = checks.found_gpu()
    if gpu is None:
        return say("unrated", "there is no GPU here")
    try:
        found = microbenchmarks.measure(*gpu, lambda text: say("progress", text))
    except NotMeasuredError as error:
        return say("unrated", str(error))
    say("rates", asdict(found))
    try:
        return say("kept", f"kept in {rates.keep(found)}")
    except KernelcountError as error:
        return say("kept", f"not kept: {error}")


def _record(say: Say, wanted: Path, scratch: Path) -> None:
    from kernelcount.errors import UsageError
    from kernelcount.examination import checks, recorder
    from kernelcount.paper import atlas, cards

    gpu = checks.found_gpu()
    if gpu is None:
        raise NotMeasuredError("--record-atlas: there is no GPU here to record on")
    made = recorder.record(*gpu, scratch, lambda text: say("progress", text))
    try:
        wanted.write_text(atlas.dump(made), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--record-atlas {wanted}: {error.strerror}") from None
    calls = sum(len(entry.calls) for entry in made.entries)
    classes = sum(entry.klass is not None for entry in made.entries)
    text = f"{wanted}: {calls} library calls and {classes} classes of shape, {made.source}"
    if made.card in cards.CARDS:
        use = f"KERNELCOUNT_ATLAS={wanted} kernelcount run ... --device paper --gpu {made.card}"
    else:
        use = f"there is no --gpu {made.card} yet, so paper has no use for it"
    say("recorded", f"{text}; {use}")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
