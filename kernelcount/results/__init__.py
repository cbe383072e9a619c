"""What the Python API gives: frozen results that show the CLI's table when they are printed.

A figure is right, or asking for it raises NotMeasuredError with the reason: no assertion about an
unknown count can pass by accident.
"""

from kernelcount.results.checking import Checking as Checking
from kernelcount.results.counts import Count as Count
from kernelcount.results.numbers import Names as Names
from kernelcount.results.numbers import Ratio as Ratio
from kernelcount.results.numbers import Whole as Whole
from kernelcount.results.several import Comparison as Comparison
from kernelcount.results.several import Reading as Reading
from kernelcount.results.several import counts_of as counts_of
