"""Counting without a GPU: eager code op by op, compiled code as Inductor would write it."""

from kernelcount.paper.cards import CARDS as CARDS
from kernelcount.paper.cards import find as find
