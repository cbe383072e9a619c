"""Counting without a GPU: eager code op by op, compiled code as Inductor would write it."""

from kernelcount.errors import UsageError
from kernelcount.model import Job
from kernelcount.paper.cards import CARDS as CARDS
from kernelcount.paper.cards import cited as cited
from kernelcount.paper.cards import find as find
from kernelcount.paper.cards import of_device as of_device


def check(job: Job) -> None:
    """Refuse what only a call that runs can give. Raises UsageError."""
    for asked, flag, why in (
        (job.traces, "--trace", "runs on paper, so there is no trace"),
        (job.cold, "--cold", "runs on paper, so there are no times"),
        (job.reference, "--reference", "runs on paper, so there are no results"),
        (job.remedy, "--remedy", "runs on paper, so nothing can be tried; --device cpu runs it"),
    ):
        if asked:
            raise UsageError(f"{flag}: nothing {why}")
