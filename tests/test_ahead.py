"""Jobs on paper are done ahead of those that are waited for; what is measured is done alone."""

import threading
import time

import pytest

from kernelcount.ahead import Ahead
from kernelcount.errors import Interrupted, NotMeasuredError
from kernelcount.model import Environment, Job
from kernelcount.runners import Results

PAPER = [Job(f"{i}.py:f", device="paper") for i in range(4)]


class Run:
    """A runner that says which jobs it was given, how many at once, and on which thread."""

    def __init__(self, kind="paper", wait=0.0):
        self.kind, self.wait, self.begun, self.at_once, self.most = kind, wait, [], 0, 0
        self.lock = threading.Lock()

    def __call__(self, job, progress, companion=None, *, background=None):
        with self.lock:
            self.begun.append((job.spec, threading.current_thread() is threading.main_thread()))
            self.at_once += 1
            self.most = max(self.most, self.at_once)
        progress(f"doing {job.spec}")
        until = time.monotonic() + self.wait
        while time.monotonic() < until:
            if background.cancelled.wait(0.01):
                raise Interrupted("given up")
        with self.lock:
            self.at_once -= 1
        if "bad" in job.spec:
            raise NotMeasuredError("it died")
        return Results(job, environment=Environment(kind=self.kind))


def test_as_many_as_there_are_cores_are_done_at_once_and_come_in_order(monkeypatch):
    monkeypatch.setattr("kernelcount.ahead._LOOK", 0.001)
    run = Run(wait=0.05)
    with Ahead(PAPER, run, 2) as ahead:
        said = []
        done = [ahead(job, said.append).job for job in PAPER]
    assert done == PAPER
    assert run.most == 2
    assert "doing 0.py:f" in said


def test_where_nobody_says_on_which_device_the_first_one_tells():
    jobs = [Job(f"{i}.py:f") for i in range(3)]
    run = Run("paper", 0.02)
    with Ahead(jobs, run, 2) as ahead:
        for job in jobs:
            ahead(job, lambda _: None)
    assert run.begun[0] == ("0.py:f", True)
    assert [main for _, main in run.begun[1:]] == [False, False]


def test_what_is_measured_is_done_alone_and_in_turn():
    jobs = [Job("0.py:f"), Job("1.py:f", device="cuda"), Job("2.py:f")]
    run = Run("cuda", 0.01)
    with Ahead(jobs, run, 2) as ahead:
        for job in jobs:
            ahead(job, lambda _: None)
    assert (run.most, [main for _, main in run.begun]) == (1, [True] * 3)


def test_a_job_that_fails_fails_where_it_is_asked_for():
    jobs = [PAPER[0], Job("bad.py:f", device="paper"), PAPER[1]]
    with Ahead(jobs, Run(), 3) as ahead:
        assert ahead(jobs[0], lambda _: None).job == jobs[0]
        with pytest.raises(NotMeasuredError, match="it died"):
            ahead(jobs[1], lambda _: None)
        assert ahead(jobs[2], lambda _: None).job == jobs[2]


def test_a_job_that_was_not_announced_is_done_all_the_same():
    with Ahead([], Run(), 1) as ahead:
        assert ahead(PAPER[0], lambda _: None).job == PAPER[0]


def test_what_is_not_waited_for_is_given_up():
    began = time.monotonic()
    with Ahead(PAPER, Run(wait=60), 2) as ahead:
        ahead._begin()
        (first, _) = ahead._going
    assert time.monotonic() - began < 5
    with pytest.raises(Interrupted):
        first.future.result()
