"""Events -> what a trace holds: its records, which launch put each there, and what is missing.

A record belongs to its launch by correlation, never by the time at which it ran.
"""

from kernelcount.timeline.settled import Settled as Settled
from kernelcount.timeline.taking import Timeline as Timeline
from kernelcount.timeline.twice import written_twice as written_twice
