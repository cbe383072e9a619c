"""Counting on paper in the background, beside a measurement."""

import time

import pytest

from kernelcount import paper, warm
from kernelcount.beside import Alongside, OnPaper
from kernelcount.errors import Interrupted, KernelcountError
from kernelcount.model import Beside, Capture, Environment, Job, Paper, Unmeasured
from kernelcount.runners import Results

H200 = Environment("NVIDIA H200", "cuda", "2.11.0")
JOB = Job(
    "m.py:f",
    device="cuda",
    traces=("e.json", "c.json"),
    cold=True,
    reference=True,
    remedy=True,
    ncu=True,
)
MEASURED = {0: Capture("eager"), 1: Unmeasured("compile", "lost")}
EXPECTED = Capture("eager", basis="paper", paper=Paper(0, 0, False, 0, 0, 0, 0, 1))


class Started:
    """Stands for a job in the background."""

    def __init__(self, job):
        self.job, self.cancelled, self.rested = job, False, []

    def result(self, progress):
        progress("eager: on paper, call 3")
        return Results(self.job, {0: EXPECTED, 1: EXPECTED})

    def rest(self, on):
        self.rested.append(on)

    def cancel(self):
        self.cancelled = True


class Failing(Started):
    def result(self, progress):
        raise KernelcountError("no such torch\nand more", 3)


def begun(environment, start=Started):
    """All jobs that were started, and what paper says in the end, with its progress."""
    jobs, said = [], []

    def started(job):
        jobs.append(start(job))
        return jobs[-1]

    with OnPaper(JOB, started) as beside:
        beside.ready(environment)
        found = beside.found(MEASURED, said.append)
    return jobs, found, said


def test_what_is_measured_on_a_gpu_is_counted_on_paper_for_that_card():
    (job,), found, said = begun(H200)
    assert (job.job.device, job.job.gpu) == ("paper", "H200")
    paper.check(job.job)  # none of what it refuses is asked of it
    assert not job.job.ncu
    assert found == {0: Beside(EXPECTED, same_calls=True)}
    assert said == ["on paper, eager: on paper, call 3"]


def test_it_rests_while_times_are_taken_and_goes_on_to_its_end():
    jobs = []
    with OnPaper(JOB, lambda job: jobs.append(Started(job)) or jobs[-1]) as paper:
        paper.timing(on=True)  # nothing has begun: nothing to rest
        paper.ready(H200)
        paper.timing(on=True)
        assert jobs[0].rested == [True]
        paper.found(MEASURED, str)
    assert jobs[0].rested == [True, False]


def test_an_error_on_paper_is_a_reason():
    _, found, _ = begun(H200, Failing)
    assert found == {0: Beside(Unmeasured("eager", "no such torch"))}


def test_for_a_card_without_figures_nothing_is_started():
    jobs, found, _ = begun(Environment("Quadro X", "cuda"))
    assert jobs == []
    assert found[0].outcome.reason.startswith("no figures of Quadro X are at hand, only of H200")


@pytest.mark.parametrize("kind", ["cpu", "paper", "xpu", "hip", "fake"])
def test_only_beside_an_nvidia_gpu_is_there_a_count_on_paper(kind):
    assert begun(Environment("NVIDIA H200", kind))[:2] == ([], {})


def test_where_nothing_was_measured_paper_is_not_waited_for_and_given_up():
    started = Started(JOB)
    with OnPaper(JOB, lambda _: started) as paper:
        paper.ready(H200)
        assert paper.found({0: Unmeasured("eager", "lost")}, pytest.fail) == {}
    assert started.cancelled


def test_a_job_in_the_background_is_done_without_a_word(target, capfd):
    path = target("print('loading')\ndef f(x): return x + 1")
    job = Job(f"{path}:f", device="paper", sizes=(4,), variants=("eager",))
    said = []
    results = Alongside(job, start=warm.forked).result(said.append)
    assert results.outcomes[0].count("kernel") == 1
    assert said
    assert capfd.readouterr() == ("", "")


def test_a_job_that_is_given_up_ends_at_once(target):
    path = target("import time\ntime.sleep(60)\ndef f(x): return x")
    alongside = Alongside(Job(f"{path}:f", device="paper", sizes=(4,)))
    start = time.monotonic()
    alongside.cancel()
    assert time.monotonic() - start < 20
    with pytest.raises(Interrupted):
        alongside.result(lambda _: None)


def test_a_job_that_rests_does_nothing_until_it_goes_on(target, tmp_path, capfd):
    ticks = tmp_path / "ticks"
    path = target(f"""
import time
print("loading")
for _ in range(10_000):
    with open({str(ticks)!r}, "a") as file:
        file.write(".")
    time.sleep(0.01)
""")
    # On the CPU, since there the module is imported two seconds sooner than on paper.
    alongside = Alongside(Job(f"{path}:f", device="cpu", sizes=(4,)))
    try:
        wait_until(ticks.exists)
        alongside.rest(on=True)
        # Three times, for one that merely waits for a core does not grow for a while either.
        wait_until(lambda: not any(grows(ticks) for _ in range(3)))
        assert not grows(ticks)
        alongside.rest(on=False)
        wait_until(lambda: grows(ticks))
    finally:
        alongside.rest(on=True)
        alongside.cancel()  # one that rests can be ended, too
    assert capfd.readouterr() == ("", "")


def grows(file):
    before = file.stat().st_size
    time.sleep(0.3)
    return file.stat().st_size > before


def wait_until(true, seconds=60):
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until
        time.sleep(0.05)
