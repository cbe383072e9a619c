"""On two GPUs each has its own kernels, and NCCL's stand among them under their own names.

A sum over both GPUs is one kernel of NCCL on each. Under torchrun there is a process for each GPU,
and each records what its own GPU does:

    torchrun --nproc-per-node 2 two_gpus.py FOLDER
    kernelcount read FOLDER/rank0.json FOLDER/rank1.json
"""

import os
import sys
from pathlib import Path

import torch
from torch import distributed
from torch.cuda import nccl

from kernelcount.errors import NotMeasuredError


def make_inputs(n: int = 1_000_000, device: str = "cuda"):
    if not torch.cuda.is_available() or torch.cuda.device_count() < 2:
        raise NotMeasuredError("needs two GPUs")  # how many torch sees says nothing on paper
    return [torch.randn(n, device=f"cuda:{i}") for i in range(2)], 0.5


def both(gradients: list[torch.Tensor], scale: float) -> list[torch.Tensor]:
    scaled = [gradient * scale for gradient in gradients]
    nccl.all_reduce(scaled)
    torch.cuda.current_stream(0).wait_stream(torch.cuda.current_stream(1))
    return scaled


def of_one_rank(gradient: torch.Tensor, scale: float) -> torch.Tensor:
    scaled = gradient * scale
    distributed.all_reduce(scaled)
    return scaled


def main(folder: Path) -> None:
    ranks, rank = int(os.environ["WORLD_SIZE"]), int(os.environ["RANK"])
    here = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if here < ranks:
        sys.exit(f"two_gpus.py: {ranks} ranks take {ranks} GPUs, and here are {here}")
    torch.cuda.set_device(rank)
    distributed.init_process_group("nccl", device_id=torch.device("cuda", rank))
    gradient = torch.randn(1_000_000, device="cuda")
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    for _ in range(2):  # the first profile of a process is slow, and thrown away
        of_one_rank(gradient, 1 / ranks)
        torch.cuda.synchronize()
        with torch.profiler.profile(activities=activities) as profile:
            of_one_rank(gradient, 1 / ranks)
            torch.cuda.synchronize()
    profile.export_chrome_trace(str(folder / f"rank{rank}.json"))
    distributed.destroy_process_group()


if __name__ == "__main__":
    if len(sys.argv) != 2 or "RANK" not in os.environ:
        sys.exit("usage: torchrun --nproc-per-node 2 two_gpus.py FOLDER")
    main(Path(sys.argv[1]))
