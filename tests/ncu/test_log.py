"""What is read from a log of ncu, also one that is cut short or holds what it should not."""

import pytest

from kernelcount.ncu.log import parse, value

HEAD = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size",'
    '"Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"\n'
)


def row(number, name, metric, unit, found, *, process=7):
    return (
        f'"{number}","{process}","python3.12","127.0.0.1","{name}","1","7","(128, 1, 1)",'
        f'"(977, 1, 1)","0","9.0","Command line profiler metrics","{metric}","{unit}","{found}"\n'
    )


ADD = "vectorized_elementwise_kernel"
LOG = (
    "==PROF== Connected to process 7 (/usr/bin/python3.12)\n"
    f'==PROF== Profiling "{ADD}" - 0: 0%....50%....100% - 1 pass\n'
    f'==PROF== Profiling "{ADD}" - 1: 0%....50%....100% - 3 passes\n'
    "==PROF== Disconnected from process 7\n"
    + HEAD
    + row(0, ADD, "dram__bytes_read.sum", "byte", "800,000,512")
    + row(0, ADD, "gpu__time_duration.sum", "nsecond", "276,320")
    + row(1, ADD, "dram__bytes_read.sum", "byte", "399,998,976")
    + row(1, ADD, "gpu__time_duration.sum", "nsecond", "n/a")
)


def test_each_kernel_has_its_metrics_in_the_order_of_the_launches():
    first, second = parse(LOG).kernels
    assert (first.name, first.grid, first.block) == (ADD, (977, 1, 1), (128, 1, 1))
    assert first.metrics == {
        "dram__bytes_read.sum": 800_000_512, "gpu__time_duration.sum": 276_320,
    }  # fmt: skip
    assert second.metrics == {"dram__bytes_read.sum": 399_998_976, "gpu__time_duration.sum": None}


def test_the_most_that_a_kernel_was_run_is_told():
    assert parse(LOG).passes == 3
    assert parse(HEAD).passes is None


def test_what_the_user_prints_in_between_is_passed_over():
    lines = LOG.splitlines(keepends=True)
    mixed = [*lines[:5], "loss 0.3\n", '"quoted", like a row\n', '"1"\n', "\n", *lines[5:]]
    assert parse("".join(mixed)).kernels == parse(LOG).kernels


def test_a_kernel_name_may_hold_commas_brackets_and_quotes():
    name = 'void f<4, at::native::{lambda(float, ""b"")#1}>(int, T2)'
    (kernel,) = parse(HEAD + row(0, name, "m", "", "1")).kernels
    assert kernel.name == name.replace('""', '"')


def test_processes_count_their_kernels_apart():
    text = HEAD + row(0, "a", "m", "", "1") + row(0, "b", "m", "", "2", process=8)
    assert [k.name for k in parse(text).kernels] == ["a", "b"]


def test_columns_that_other_versions_add_do_no_harm():
    head = HEAD.rstrip() + ',"Rule Name"\n'
    text = head + row(0, "a", "m", "%", "12.5").rstrip() + ',""\n'
    assert parse(text).kernels[0].metrics == {"m": 0.125}


@pytest.mark.parametrize(
    ("text", "unit", "expected"),
    [
        ("1,234", "byte", 1234), ("1.5", "Mbyte", 1.5e6), ("4", "Kbyte", 4e3), ("0", "byte", 0),
        ("2", "usecond", 2e3), ("2", "us", 2e3), ("2.5", "ms", 2.5e6), ("1", "second", 1e9),
        ("81.25", "%", 0.8125), ("9,120", "warp", 9120), ("3", "", 3), ("1.5e+06", "byte", 1.5e6),
        ("n/a", "byte", None), ("", "", None), ("nan", "%", None), ("inf", "%", None),
        ("(!) n/a", "byte", None), ("1.234.567", "byte", None), ("1,23", "byte", None),
    ],
)  # fmt: skip
def test_values_are_bytes_nanoseconds_shares_or_counts(text, unit, expected):
    found = value(text, unit)
    assert found == expected if expected is None else found == pytest.approx(expected)


def test_errors_are_those_of_ncu():
    log = parse("==PROF== Connected\n==ERROR== ERR_NVGPUCTRPERM - The user\nERROR of the user's\n")
    assert log.errors == ("ERR_NVGPUCTRPERM - The user",)
    assert log.kernels == ()


def test_a_log_that_is_cut_short_anywhere_is_read_as_far_as_it_goes():
    for length in range(len(LOG)):
        found = parse(LOG[:length])
        assert len(found.kernels) <= 2
        whole = parse(LOG).kernels
        for kernel, expected in zip(found.kernels, whole, strict=False):
            assert kernel.name == ADD
            assert kernel.metrics.items() <= expected.metrics.items()
