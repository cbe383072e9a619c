"""What torch tells of waits in a call: at which lines, and that all else is left as it was."""

import sys
import warnings

import pytest

from kernelcount.devices.base import SYNC_WARNING
from kernelcount.devices.cpu import Cpu
from kernelcount.devices.fake import Fake, wait
from kernelcount.devices.gpu import Gpu
from kernelcount.probes.syncs import told


def lines(call, *, asked=False):
    """The functions in which torch told of waits, and in which they were asked for."""
    found = told(call, Fake(), asked=asked)
    return [s.function for s in found.waits], [s.function for s in found.asked]


def waits_twice():
    wait("aten::item")
    wait("aten::nonzero")


def test_each_warning_is_a_wait_at_the_line_that_runs():
    found = told(waits_twice, Fake(), asked=False)
    first = waits_twice.__code__.co_firstlineno
    assert [s.line - first for s in found.waits] == [1, 2]
    assert {s.file.rpartition("/")[2] for s in found.waits} == {"test_told_syncs.py"}
    assert found.asked == ()


def test_a_line_that_waits_again_and_again_is_told_each_time():
    def loops():
        for _ in range(3):
            wait()

    assert lines(loops) == (["loops"] * 3, [])


def test_what_the_user_has_silenced_is_told_all_the_same():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert lines(waits_twice)[0] == ["waits_twice"] * 2


def test_other_warnings_go_to_whoever_shows_them_and_the_filters_stay():
    def warns():
        warnings.warn("mine", stacklevel=1)
        wait()

    before = [*warnings.filters]
    with pytest.warns(UserWarning, match="mine") as caught:
        assert lines(warns)[0] == ["warns"]
    assert len(caught) == 1
    assert [*warnings.filters] == before


def test_outside_of_the_call_nobody_is_warned():
    told(waits_twice, Fake(), asked=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        waits_twice()
    assert not [w for w in caught if str(w.message).startswith(SYNC_WARNING)]


def test_a_call_that_raises_leaves_nothing_behind():
    def fails():
        raise ValueError

    shown, profiled = warnings.showwarning, sys.getprofile()
    with pytest.raises(ValueError):  # noqa: PT011
        told(fails, Fake(), asked=True)
    assert (warnings.showwarning, sys.getprofile()) == (shown, profiled)


def test_what_is_asked_to_wait_for_is_seen_by_its_frame():
    import torch

    def asks():
        for waiting in (torch.cuda.synchronize, torch.cuda.Event.synchronize):
            with pytest.raises(Exception):  # noqa: B017, PT011  there is no GPU to wait for
                waiting(None)

    if torch.cuda.is_available():
        pytest.skip("here nothing would raise")
    assert lines(asks, asked=True) == ([], ["asks"] * 2)
    assert lines(asks) == ([], [])


def test_a_profile_function_of_the_users_own_stays_at_work():
    def mine(*_):
        return None

    sys.setprofile(mine)
    try:
        assert lines(waits_twice, asked=True) == (["waits_twice"] * 2, [])
        assert sys.getprofile() is mine
    finally:
        sys.setprofile(None)


def test_a_device_of_which_torch_tells_nothing_tells_nothing():
    called = []
    assert told(lambda: called.append(1), Cpu(), asked=False) is None
    assert told(lambda: called.append(1), Gpu("xpu", ""), asked=False) is None
    assert called == [1]
