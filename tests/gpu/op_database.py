"""Whether calls of all of torch's own ops launch as many kernels and copies as paper says.

    python tests/gpu/op_database.py [--jobs N] [--record FILE] [OP ...]

Makes samples of torch's database of ops (op_db, for its tests; it needs ``expecttest``), float32,
at most three small ones of each op, forward and backward, twice on the GPU and once more under
torch.profiler; N processes beside count the same calls on paper. Prints where both disagree: paper
says another number as exact, more than there were as a lower bound, or nothing. Exits with 1 if
there is any. `OP`: only these. `--record`: the GPU's counts of what can be written down, as JSON.

Left out are ops that draw, that are made on libraries (cuBLAS's products are in), and as_strided's.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.utils._pytree import tree_flatten

sys.path.insert(0, str(Path(__file__).parents[1]))

import launched
from launched import Launched

LEFT_OUT = (
    "as_strided_scatter", "bernoulli", "cauchy", "cholesky", "dropout", "eig", "empty", "equal",
    "exponential", "fft", "geometric", "geqrf", "item", "jiterator", "linalg", "log_normal",
    "logdet", "lu", "multinomial", "new_empty", "nn.functional.ctc_loss", "normal", "ormqr",
    "pinverse", "qr", "rand", "sparse", "svd", "symeig", "tolist", "triangular_solve", "uniform",
)  # fmt: skip
MOST_SAMPLES, LOOKED_AT, BATCH = 3, 40, 60
COPY, NO_KERNEL = "Memcpy", "Mem"


class Case(NamedTuple):
    """One call. `shapes`: of its results' gradients where those are made, too."""

    op: str
    path: str
    sample: int
    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    shapes: list[Any] | None

    @property
    def key(self) -> str:
        """What is called, and whether gradients are."""
        return f"{self.op} {self.sample} {'forward' if self.shapes is None else 'backward'}"


def ops(only: list[str]) -> Iterator[tuple[str, Any]]:
    from torch.testing._internal.common_methods_invocations import op_db

    for op in op_db:
        name = ".".join(filter(None, (op.name, op.variant_test_name)))
        left_out = any(word in name for word in LEFT_OUT) or torch.float32 not in op.dtypes
        if name in only or not (only or left_out):
            yield name, op


def samples(op: Any) -> list[Any]:
    """Its first samples of which no two are alike in shapes; none is empty."""
    random.seed(0)
    torch.manual_seed(0)
    found: dict[Any, Any] = {}
    made = op.sample_inputs("cpu", torch.float32, requires_grad=False)
    try:
        for sample in itertools.islice(made, LOOKED_AT):
            flat = tree_flatten((sample.input, sample.args, sample.kwargs))[0]
            tensors = [t for t in flat if isinstance(t, torch.Tensor)]
            if tensors and all(t.numel() for t in tensors):
                shapes = tuple((tuple(t.shape), t.dtype) for t in tensors)
                key = shapes, len(sample.args), tuple(sorted(sample.kwargs))
                found.setdefault(key, sample)
            if len(found) == MOST_SAMPLES:
                break
    except Exception:  # an op whose samples need what is not there
        pass
    return list(found.values())


def cases(only: list[str], share: int = 0, of: int = 1) -> Iterator[Case]:
    for name, op in list(ops(only))[share::of]:
        for number, sample in enumerate(samples(op)):
            args = (sample.input, *sample.args)
            yield Case(name, op.name, number, op.op, args, sample.kwargs, None)
            try:
                shapes = launched.gradient_shapes(op.op, args, sample.kwargs)
            except Exception:  # such as has no gradient
                continue
            if op.supports_autograd and any(s is not None for s in shapes):
                yield Case(name, op.name, number, op.op, args, sample.kwargs, shapes)


def on_paper(only: list[str], share: int, of: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    with launched.paper() as count:
        for case in cases(only, share, of):
            try:
                found[case.key] = count(*launched.ready(*case[3:], "cuda"))
            except Exception as error:
                found[case.key] = repr(error)[:150]
    return found


def on_gpu(found: list[Case]) -> dict[str, Launched | str]:
    """What a batch launches: each call is made twice before it is recorded."""
    from torch.profiler import ProfilerActivity, profile, record_function

    made, prepared = {}, []
    for case in found:
        try:
            call, args = launched.ready(*case[3:], "cuda")
            call(*args), call(*args)
            prepared.append((case.key, call, args))
        except Exception as error:
            made[case.key] = repr(error)[:150]
        torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as run:
        for key, call, args in prepared:
            with record_function(f"CASE {key}"):
                call(*args)
                torch.cuda.synchronize()
    return made | _by_case(run.profiler.kineto_results.events(), [key for key, *_ in prepared])


def _by_case(events: Any, keys: list[str]) -> dict[str, Launched | str]:
    spans, works = {}, []
    for event in events:
        name, on_host = event.name(), "CPU" in str(event.device_type())
        if name.startswith("CASE ") and on_host:
            begun = event.start_ns()
            spans[name.removeprefix("CASE ")] = begun, begun + event.duration_ns()
        elif not on_host and not name.startswith(("CASE ", "Context")):
            works.append((event.start_ns(), name))
    names = {
        key: [name for at, name in works if spans[key][0] <= at < spans[key][1]] for key in keys
    }
    return {
        key: Launched(
            sum(not name.startswith(NO_KERNEL) for name in found),
            sum(name.startswith(COPY) for name in found),
        )
        for key, found in names.items()
    }


def compared(paper: Any, measured: Launched | str) -> str:
    """``right``, ``at least``, or what is wrong."""
    if isinstance(measured, str) or measured is None:
        return "no GPU's"
    if isinstance(paper, str) or paper is None:
        return "not counted"
    if not Launched(*paper).is_as(measured):
        return "above" if paper[2] else "wrong"
    return "at least" if paper[2] else "right"


def recorded(found: list[Case], measured: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for case in found:
        try:
            launched.named(case.path)
            call = {
                "op": case.path,
                "args": launched.written(case.args),
                "kwargs": {name: launched.written(v) for name, v in case.kwargs.items()},
            }
        except (AttributeError, TypeError):
            continue
        if isinstance(counts := measured.get(case.key), Launched):
            yield {**call, "backward": case.shapes is not None, "launched": list(counts[:2])}


def main(given: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{i}.json" for i in range(given.jobs)]
        beside = [
            subprocess.Popen(
                [sys.executable, __file__, "--paper", f"{i}/{given.jobs}", file, *given.ops],
                env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"},
            )
            for i, file in enumerate(files)
        ]
        found, measured = list(cases(given.ops)), {}
        for i in range(0, len(found), BATCH):
            measured |= on_gpu(found[i : i + BATCH])
        ended = [process.wait() for process in beside]
        assert not any(ended), ended
        paper: dict[str, Any] = {}
        for file in files:
            paper |= json.loads(file.read_text())
    verdicts = {case.key: compared(paper.get(case.key), measured[case.key]) for case in found}
    for key, verdict in verdicts.items():
        if verdict in ("wrong", "above", "not counted"):
            print(f"{verdict}: {key}: paper {paper.get(key)}, measured {measured[key]}")
    counted = dict(Counter(verdicts.values()))
    print(f"{len(found)} calls of {len({case.op for case in found})} ops: {counted}")
    if given.record:
        head = json.dumps(
            {"card": torch.cuda.get_device_name(), "torch": torch.__version__.partition("+")[0]}
        )
        rows = ",\n".join(map(json.dumps, recorded(found, measured)))
        Path(given.record).write_text(f'{head[:-1]}, "calls": [\n{rows}\n]}}\n')
    return int(any(v in ("wrong", "above", "not counted") for v in verdicts.values()))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--record")
    parser.add_argument("--paper", nargs=2, help=argparse.SUPPRESS)  # a share's process: I/N FILE
    parser.add_argument("ops", nargs="*")
    options = parser.parse_args()
    if options.paper:
        share = [int(number) for number in options.paper[0].split("/")]
        Path(options.paper[1]).write_text(json.dumps(on_paper(options.ops, *share)))
        sys.exit(0)
    sys.exit(main(options))
