"""A training loop hides three waits: a metric by .cpu(), an `if` on a tensor, a pageable copy.

At each of them the CPU waits until the GPU has done all its work, and the GPU then waits for the
CPU. The metric stays on the GPU until the end, the check for NaN is a number that is looked at
later, and the batch comes from pinned memory without waiting.
"""

from collections import deque

import torch
import torch.nn.functional as nnf

metrics: deque = deque(maxlen=1)


def make_inputs(n: int = 4096, device: str = "cuda"):
    weight = torch.zeros(n, 10, device=device, requires_grad=True)
    labels = torch.randint(10, (256,), device=device)
    images = torch.randn(256, n)
    return images, images.pin_memory(), labels, weight


def before(images, _pinned, labels, weight):
    batch = images.to(labels.device)  # from pageable memory: waits
    loss = nnf.cross_entropy(batch @ weight, labels)
    if loss.isnan():  # the `if` asks for a value: waits
        raise ValueError("the loss is not a number")
    (gradient,) = torch.autograd.grad(loss, weight)
    metrics.append(loss.detach().cpu())  # waits
    return weight.detach() - 0.1 * gradient


def after(_images, pinned, labels, weight):
    batch = pinned.to(labels.device, non_blocking=True)  # the loader has pin_memory=True
    loss = nnf.cross_entropy(batch @ weight, labels)
    bad = loss.isnan()  # looked at when the epoch is over, as the metric is
    (gradient,) = torch.autograd.grad(loss, weight)
    metrics.append((loss.detach(), bad))
    return weight.detach() - 0.1 * gradient
