"""Whose threads are refused, and which may go on beside a count."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from kernelcount.paper import threads
from kernelcount.paper.log import Log
from kernelcount.paper.scene import Scene
from kernelcount.paper.values import Values


@pytest.fixture
def scene(monkeypatch):
    """A count that goes on, with what stands in for both ways to start work in a thread."""
    made = Scene()
    made.begin(Log("H200"), Values())
    started, submitted = threads.starting(made)
    monkeypatch.setattr(threading.Thread, "start", started)
    monkeypatch.setattr(ThreadPoolExecutor, "submit", submitted)
    return made


def run_by(work, file, module):
    """Start a thread from code that lies in `file`."""
    code = "t = Thread(target=work)\nt.start()\nt.join()"
    names = {"Thread": threading.Thread, "work": work, "__name__": module}
    exec(compile(code, file, "exec"), names)


def on_the_gpu():
    torch.ones(2, device="meta").add_(1)


IN_TORCH = torch.__file__
A_LIBRARY = "/usr/lib/python3/site-packages/bar/monitor.py"


@pytest.mark.parametrize(
    ("file", "module", "work", "refused"),
    [
        ("/home/me/mine.py", "mine", int, True),  # it may work on when the call is over
        (A_LIBRARY, "bar.monitor", int, False),
        (A_LIBRARY, "bar.monitor", on_the_gpu, True),
        (A_LIBRARY, "bar.monitor", lambda: torch.ones(2).add_(1), False),
        (IN_TORCH, "torch._inductor.async_compile", on_the_gpu, False),
        (IN_TORCH, "torch.nn.parallel.parallel_apply", on_the_gpu, True),
    ],
)
def test_a_thread_in_a_call_is_refused_by_who_starts_it_and_what_it_does(
    scene, file, module, work, refused
):
    with scene.log.opened():
        run_by(work, file, module)
    assert list(scene.refusals) == [threads.REASON] * refused


def test_a_pool_is_the_users_though_python_starts_its_threads(scene):
    with scene.log.opened(), ThreadPoolExecutor(1) as pool:
        assert pool.submit(pow, 2, exp=3).result() == 8
    assert list(scene.refusals) == [threads.REASON]


def test_threads_that_make_the_arguments_are_no_part_of_the_call(scene):
    run_by(int, "/home/me/mine.py", "mine")
    assert not scene.refusals


def test_a_thread_that_outlives_a_count_is_no_part_of_the_next_if_it_rests(scene):
    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()
        scene.end()
        scene.begin(Log("H200"), Values())
        assert not scene.refusals
        pool.submit(on_the_gpu).result()
    assert list(scene.refusals) == [threads.REASON]
