"""Functions that make the CPU wait for the GPU, at lines that a comment names, and others."""

import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
model = torch.nn.Sequential(
    torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1)
).to(DEVICE)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)


def make_batches(device="cpu"):
    generator = torch.Generator().manual_seed(0)
    return ([torch.randn(64, 256, generator=generator) for _ in range(3)],)


def make_pinned(device="cpu"):
    (batches,) = make_batches()
    return ([batch.pin_memory() for batch in batches],)


def make_matrix(device="cpu"):
    return (torch.randn(4096, 4096, device=device),)


def trains(batches):
    """Three steps, each with three waits."""
    losses = []
    for batch in batches:
        x = batch.to("cuda")  # pageable
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if torch.isnan(loss):  # tested
            raise FloatingPointError
        losses.append(loss.detach().cpu())  # metric
    return losses


def trains_cured(batches):
    """The same without any."""
    losses = []
    for batch in batches:
        x = batch.to("cuda", non_blocking=True)
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses


def prints(x):
    text = repr(x[:3])  # printed
    return x + len(text)


def asks_to_wait(x):
    torch.cuda.synchronize()  # nothing to wait for
    y = x @ x
    done = torch.cuda.Event()
    done.record()
    done.synchronize()  # event
    z = y @ x
    torch.cuda.current_stream().synchronize()  # stream
    return z + 1


def waits_beside_other_work(x):
    """The GPU goes on with the product for some milliseconds."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        product = x @ x
    first = x[0, 0].item()  # free
    row = x[0] * first
    torch.cuda.current_stream().wait_stream(side)
    return product, row


def scaled(x):
    return (x / (x.abs().max().item() + 1)).relu()  # scale


def many_small(x):
    for _ in range(20):
        x = x * 1.5 - 0.5
    return x
