"""The process in which the user's code runs; outcomes come back as data.

`perform` does a job and tells what happens by messages. It runs here, in a process of its own
(`main`), or in the caller's process; which of the two is `runners`' business.
"""

from kernelcount.worker.messages import (
    Begin,
    Done,
    Ended,
    Failed,
    Loaded,
    Loading,
    Message,
    Progress,
    Ready,
    Send,
    Start,
    Step,
    Together,
    Unwritten,
    steps,
)
from kernelcount.worker.process import LOWEST, WHERE, main
from kernelcount.worker.session import perform, repeat

__all__ = [
    "LOWEST", "WHERE", "Begin", "Done", "Ended", "Failed", "Loaded", "Loading", "Message",
    "Progress", "Ready", "Send", "Start", "Step", "Together", "Unwritten", "main", "perform",
    "repeat", "steps",
]  # fmt: skip
