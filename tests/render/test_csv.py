"""CSV, as whole text."""
# ruff: noqa: E501 (a line of the table is one line)

from __future__ import annotations

import csv
from io import StringIO

import pytest

from kernelcount.model import Note, Unmeasured
from kernelcount.render import render

from . import samples


def test_each_variant_at_each_size_is_a_line():
    screen = render(samples.sweep(), format="csv")
    assert (
        screen
        == """\
command,name,size,status,reason,kernels,copies,fills,launches,graph_launches,kernel_time_ns,busy_ns,complete,stable,aten,generated,basis,at_least,transfers,paper_kernels,notes
run,eager,100,measured,,2,0,0,2,0,2315,2315,true,true,,,measured,,,,
run,compile,100,measured,,1,0,0,1,0,1365,1365,true,true,,,measured,,,,
run,eager,1000000,measured,,2,0,0,2,0,5556,5556,true,true,,,measured,,,,
run,compile,1000000,measured,,1,0,0,1,0,3276,3276,true,true,,,measured,,,,
run,eager,100000000,measured,,2,0,0,2,0,463000,463000,true,true,,,measured,,,,
run,compile,100000000,measured,,1,0,0,1,0,273000,273000,true,true,,,measured,,,,
"""
    )


def test_cpu_operations_leave_the_gpu_columns_empty():
    screen = render(samples.on_cpu(), format="csv")
    assert (
        screen
        == """\
command,name,size,status,reason,kernels,copies,fills,launches,graph_launches,kernel_time_ns,busy_ns,complete,stable,aten,generated,basis,at_least,transfers,paper_kernels,notes
run,eager,100000000,measured,,,,,,,,,true,true,2,0,measured,,,,
run,compile,100000000,measured,,,,,,,,,true,true,0,1,measured,,,,
"""
    )


def test_an_unknown_figure_is_an_empty_cell():
    screen = render(samples.incomplete(), format="csv")
    assert (
        screen
        == """\
command,name,size,status,reason,kernels,copies,fills,launches,graph_launches,kernel_time_ns,busy_ns,complete,stable,aten,generated,basis,at_least,transfers,paper_kernels,notes
read,lost.json,,unmeasured,"2 launches, 1 kernel record (the profiler lost one)",1,,,2,0,25000,25000,false,,,,measured,,,,
"""
    )


@pytest.mark.parametrize("start", ["=", "+", "-", "@", " ="])
def test_no_text_is_computed_by_a_spreadsheet(start):
    note = Note(f"{start}1", "odd")
    seen = samples.capture("x", notes=(note,))
    report = samples.read_report(Unmeasured(f"{start}cmd|' /C calc'!A0", f"{start}2", seen))
    (line,) = csv.DictReader(StringIO(render(report, format="csv")))
    assert line["name"].startswith(f"'{start}cmd")
    assert (line["reason"].lstrip(), line["notes"].lstrip()) == (
        f"'{start.strip()}2",
        f"'{start}1",
    )


def test_a_name_never_breaks_a_line_in_two():
    lines = render(samples.evil(), format="csv").splitlines()
    assert len(lines) == 3


def test_the_codes_of_notes_stand_in_one_cell():
    report = samples.read_report(samples.capture("x", notes=(Note("b", "1"), Note("a", "2"))))
    assert render(report, format="csv").endswith(",b a\n")
