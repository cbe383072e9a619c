"""kernelcount: count the GPU kernels that a PyTorch function launches."""

__version__ = "0.1.0"
