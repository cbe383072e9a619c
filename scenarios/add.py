"""One line, one launch, one kernel: `a + b` reads two arrays and writes one, whatever their length.

Only the number of threads grows with the arrays. What crosses GPU memory is three arrays at 8
elements as at a hundred million, and at the small end the launch is all that a call costs.
"""

import torch


def add(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a + b
