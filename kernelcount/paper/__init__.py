"""Counting without a GPU: eager code op by op, compiled code as Inductor would write it."""

from kernelcount.paper.cards import CARDS as CARDS
from kernelcount.paper.cards import cited as cited
from kernelcount.paper.cards import find as find
from kernelcount.paper.cards import of_device as of_device

NO_TRACE = "--trace: nothing runs on paper, so there is no trace"
"""Why a trace is refused."""
