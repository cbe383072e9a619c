"""Fixtures for tests that count in this process: torch is imported once."""

import gc
import os
import sys
import warnings
from collections.abc import Callable
from textwrap import dedent

import pytest
from traces.rows import read

from kernelcount import app, cli, runners
from kernelcount.model import Job, Outcome

# Before torch is imported, here and in every process that a test starts. Small arrays gain nothing
# by more threads, and several processes at once lose by them; and to find out which vector
# instructions its C++ may use takes Inductor a dozen seconds.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TORCHINDUCTOR_VEC_ISA_OK", "0")

# Two dozen processes that tests start would compile the package anew, each for a second of six.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# What is imported stays: while it is, there is nothing for the garbage collector to find.
gc.disable()

_MOST_WORKERS = 4


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """A process for each core with `-n auto`, up to a few: each has torch to import, in 1 GB."""
    return min(_MOST_WORKERS, os.cpu_count() or 1)


def pytest_collection_modifyitems(items):
    """Paper comes last: after it, torch holds CUDA for started to the end of the process.

    Of several processes (pytest-xdist's `load`) each takes its tests in this order.
    """
    items.sort(key=lambda i: i.path.parent.name == "paper" or i.path.name == "test_examples.py")


def pytest_collection_finish():
    """What is imported stays: the garbage collector, which looks at all of torch, leaves it out."""
    gc.freeze()
    gc.enable()


@pytest.fixture
def count(monkeypatch) -> Callable[..., dict[str, Outcome]]:
    """Run a target in this process: the outcome of each variant, by default eager on the CPU."""
    import torch

    from kernelcount.state import UserState

    before = UserState(None, ((), {}), backward=False)  # a module may set defaults for all

    def counted(spec: str, *variants: str, **options) -> dict[str, Outcome]:
        options = {"device": "cpu", **options}
        job = Job(spec, variants=variants or ("eager",), **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's own, on what it cannot trace
            report = app.run(job, runners.in_process, lambda _: None).report
        return {outcome.name: outcome for outcome in report.outcomes}

    monkeypatch.setattr(sys, "path", [*sys.path])
    yield counted
    before.restore()
    torch.compiler.reset()


@pytest.fixture
def kernelcount(monkeypatch, capfdbinary, count):
    """Run the command line here: exit code, stdout, stderr."""
    monkeypatch.setattr(runners, "in_worker", runners.in_process)
    monkeypatch.setattr("signal.signal", lambda *_: None)

    def run(*arguments):
        sys.stdout.flush()
        capfdbinary.readouterr()
        monkeypatch.setattr(sys, "argv", ["kernelcount", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdout", os.fdopen(1, "w", closefd=False))
        with pytest.raises(SystemExit) as ended:
            cli.main()
        sys.stdout.flush()
        out, err = capfdbinary.readouterr()
        lines = [x for x in err.decode().splitlines() if not x.startswith("USDT")]
        return ended.value.code, out.decode(), "\n".join(lines)

    return run


@pytest.fixture
def trace(tmp_path) -> Callable[..., Outcome]:
    """Read a trace of these rows."""
    return lambda *rows, **options: read(tmp_path, list(rows), **options)


@pytest.fixture
def target(tmp_path) -> Callable[[str], str]:
    """Write a file of the user's; its path."""

    def written(text: str, name: str = "users.py") -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("import torch\n" + dedent(text), encoding="utf-8")
        return str(path)

    return written
