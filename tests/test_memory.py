"""Out of memory, in one line that says what to do."""

import pytest

from kernelcount import memory
from kernelcount.memory import explain, is_hopeless, is_out_of_memory, readable

GIB = 2**30


class OutOfMemoryError(RuntimeError):
    """Stands in for torch's."""


def cpu(n):
    return RuntimeError(
        "[enforce fail at alloc_cpu.cpp:118] err == 0. DefaultCPUAllocator: can't allocate memory:"
        f" you tried to allocate {n} bytes. Error code 12 (Cannot allocate memory)"
    )


def cuda(amount, capacity="139.80 GiB"):
    return OutOfMemoryError(
        f"CUDA out of memory. Tried to allocate {amount}. GPU 0 has a total capacity of {capacity}"
        " of which 100.00 GiB is free."
    )


@pytest.fixture(autouse=True)
def _a_machine_of_16_gib(monkeypatch):
    monkeypatch.setattr(memory, "physical", lambda: 16 * GIB)


@pytest.mark.parametrize(
    "error",
    [
        cpu(4 * 10**16),
        cuda("20.00 GiB"),
        MemoryError(),
        MemoryError(
            "Unable to allocate 20.0 GiB for an array with shape (5,) and data type float64"
        ),
        RuntimeError("Storage size calculation overflowed with sizes=[1000000000000, 10000000000]"),
    ],
)
def test_the_ways_in_which_memory_runs_out_are_known(error):
    assert is_out_of_memory(error)


@pytest.mark.parametrize(
    "error", [ValueError("you tried to allocate 8 bytes"), RuntimeError("shapes do not match")]
)
def test_other_errors_are_others(error):
    assert not is_out_of_memory(error)


@pytest.mark.parametrize(
    ("n", "text"),
    [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (12_345_678, "12.3 MB"), (4 * 10**16, "40 PB")],
)
def test_bytes_are_readable(n, text):
    assert readable(n) == text


@pytest.mark.parametrize(
    ("error", "size", "line"),
    [
        # an n x n temporary of floats: 4e16 bytes for 1e8, 4e8 for 1e4
        (cpu(4 * 10**16), 10**8, "it asked for 40 PB; try a smaller --size, such as 1e4"),
        # an input of n floats: 4e12 bytes for 1e12, 4e9 for 1e9
        (cpu(4 * 10**12), 10**12, "it asked for 4 TB; try a smaller --size, such as 1e9"),
        (cpu(4 * 10**12), 1_000_000, "it asked for 4 TB; try a smaller --size, such as 1e4"),
        (cuda("200.00 GiB"), 10**9, "it asked for 215 GB; try a smaller --size, such as 1e8"),
        # less than there is, but the rest was taken
        (cuda("20.00 GiB"), 10**9, "it asked for 21.5 GB; try a smaller --size, such as 1e8"),
        (cpu(4 * 10**12), 100, "it asked for 4 TB; try a smaller --size, such as 1"),
        (cpu(4 * 10**12), 1, "it asked for 4 TB; try a smaller --size, such as 1"),
        (MemoryError(), 5000, "it asked for more than there is; try a smaller --size, such as 500"),
        (cpu(4 * 10**12), None, "it asked for 4 TB; try smaller inputs, such as a smaller --size"),
    ],
)
def test_one_line_says_how_much_was_asked_for_and_what_might_fit(error, size, line):
    assert explain(error, size) == f"out of memory: {line}"


@pytest.mark.parametrize(
    ("error", "hopeless"),
    [
        (cpu(4 * 10**16), True),
        (cpu(20 * GIB), False),
        (cuda("200.00 GiB"), False),
        (cuda("2000.00 GiB"), True),
        (MemoryError(), False),
        (RuntimeError("Storage size calculation overflowed with sizes=[1]"), True),
    ],
)
def test_far_more_than_there_is_is_hopeless_for_every_variant(error, hopeless):
    assert is_hopeless(error) is hopeless


def test_an_error_whose_text_fails_is_no_trap():
    class Bad(MemoryError):
        def __str__(self):
            raise ValueError

    assert is_out_of_memory(Bad())
    assert "more than there is" in explain(Bad(), 10)


def test_what_is_available_is_no_more_than_there_is(monkeypatch):
    monkeypatch.undo()
    assert 0 < memory.available() <= memory.physical()
