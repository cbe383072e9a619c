"""Fixtures for tests that count in this process: torch is imported once."""

import gc
import os
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from functools import partial
from multiprocessing import forkserver
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

# Each graph that is compiled leaves thousands of objects: to look at them all at every 700 more, as
# is Python's default, takes a tenth of the time of a test on paper. Twenty times 20,000 are looked
# at together, some hundred MB at most.
gc.set_threshold(20_000, 20, 50)

_MOST_WORKERS = 4


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """A process for each core with `-n auto`, up to a few: each has torch to import, in 1 GB."""
    return min(_MOST_WORKERS, os.cpu_count() or 1)


def pytest_collection_modifyitems(items):
    """Paper comes last: after it, torch holds CUDA for started to the end of the process.

    Of several processes (pytest-xdist's) each takes its files in this order.
    """
    items.sort(key=_turn)


# The longest come first of those, lest one process waits for another at the end.
_LONG = (
    "test_lines.py",
    "test_counts.py",
    "test_whole.py",
    "test_gpu_code.py",
    "test_scenarios.py",
)


def _turn(item):
    last = item.path.parent.name == "paper" or item.path.name == "test_examples.py"
    return (last, item.path.name not in _LONG) if last else (last,)


# Their workers are forked from servers, each of which takes six seconds to start: one for all.
_FORKING = {
    "tests/cli/test_processes.py",
    "tests/ncu/test_run.py",
    "tests/runners/test_runners.py",
    "tests/test_beside.py",
    "tests/test_warm.py",
}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Keep the tests of a file in one process, in our order: what they share is made once.

    For xdist's default, `load`; another `--dist` is as it was asked for.
    """
    from xdist.scheduler import LoadFileScheduling

    if config.getvalue("dist") != "load":
        return None

    class ByFile(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file = super()._split_scope(nodeid)
            return "forking" if file in _FORKING else file

    config.option.loadscopereorder = False
    return ByFile(config, log)


def pytest_collection_finish():
    """What is imported stays: the garbage collector, which looks at all of torch, leaves it out."""
    gc.freeze()
    gc.enable()
    # How long guards take to evaluate is only logged, and to measure it Dynamo flushes the caches
    # of the processor at each graph: a tenth of the time of a small one.
    if guards := sys.modules.get("torch._dynamo.guards"):
        guards.profile_guard_manager = lambda *_: 0.0


@pytest.fixture(scope="session")
def forking():
    """Have workers forked, within a context, from a process that has imported torch alone.

    So that, unlike one that has counted on paper, it is as good for the CPU as a new one.
    """
    from kernelcount import warm
    from kernelcount.probes import compiler

    server, ready = forkserver.ForkServer(), threading.Event()
    server.set_forkserver_preload([*compiler.MODULES, "kernelcount.capture", "kernelcount.worker"])
    ready.set()

    @contextmanager
    def patched():
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TORCH_WARM_POOL", "0")  # no fork would have its threads
            server.ensure_running()
        with pytest.MonkeyPatch.context() as patch:
            for name in ("ensure_running", "connect_to_new_process"):
                patch.setattr(forkserver, name, getattr(server, name))
            patch.setattr(warm, "_served", ready)
            yield partial(runners.in_worker, start=warm.forked)

    yield patched
    server._stop()


@pytest.fixture
def in_fork(forking):
    """Do a job in workers that are forked, as `runners.in_worker` does it in new ones."""
    with forking() as run:
        yield run


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
    return command_line(monkeypatch, capfdbinary)


@pytest.fixture
def kernelcount_forked(monkeypatch, capfdbinary, in_fork):
    """The same, but for the worker: a process of its own."""
    monkeypatch.setattr(runners, "in_worker", in_fork)
    return command_line(monkeypatch, capfdbinary)


def command_line(monkeypatch, capfdbinary):
    """The command line as a function."""
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
