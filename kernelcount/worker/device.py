"""What a job is done on, as far as it can be told without starting a GPU."""

from __future__ import annotations

import os
from unittest import mock

from kernelcount.model import Job


def is_for_paper(job: Job) -> bool:
    """Whether a job will be done on paper, told without starting a GPU, before the user's code."""
    from kernelcount import devices

    if job.device is not None:
        return devices.parse(job.device)[0].kind == "paper"
    return not may_have_a_gpu() and devices.choose(None)[0].kind == "paper"


def may_have_a_gpu() -> bool:
    """Whether there may be a GPU, told without starting one.

    CUDA that is started has settled which GPUs the process sees; NVML tells without that. Of other
    makers' GPUs nothing is known before.
    """
    import torch

    if torch.version.xpu is not None:
        return True
    with mock.patch.dict(os.environ, {"PYTORCH_NVML_BASED_CUDA_CHECK": "1"}):
        return bool(torch.cuda.is_available())
