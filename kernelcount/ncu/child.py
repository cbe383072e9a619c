"""The process that `ncu` looks at: it imports the target and calls it as the worker does."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import msgspec

from kernelcount import worker
from kernelcount.model import Job

_GRACE = 10.0  # seconds for what the user's code does at exit
_GONE = 130  # exit code where the parent is gone


def main(folder: str) -> None:
    """Do the job that stands in `folder`, and leave there why it could not be done, if it couldn't.

    The process ends as soon as nobody holds the pipe ``alive`` open any more, which is when the
    parent is gone: `ncu` passes no other sign of that on.
    """
    threading.Thread(target=_end_with, args=(Path(folder, "alive"),), daemon=True).start()
    job = msgspec.convert(json.loads(Path(folder, "job").read_bytes()), Job)
    said = worker.repeat(job, lambda _: None, folder)
    Path(folder, "end").write_text(said or "", encoding="utf-8")
    # A thread of the user's might keep the process alive, and `ncu` writes its log at the end.
    end = threading.Timer(_GRACE, os._exit, (0,))
    end.daemon = True
    end.start()


def _end_with(alive: Path) -> None:
    with alive.open("rb") as pipe:
        pipe.read(1)
    os._exit(_GONE)
