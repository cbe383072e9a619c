"""The GPU's own counters, by Nsight Compute: the steady call of a variant, run again under `ncu`.

`ncu` and the profiler that counts kernels exclude each other, so it is a process of its own.
"""

from kernelcount.ncu.asking import counted as counted
