"""CSV, as whole text."""
# ruff: noqa: E501 (a line of the table is one line)

from __future__ import annotations

import csv
from dataclasses import replace
from io import StringIO

import pytest

from kernelcount.model import Note, Numerics, Run, Speed, Timing, Unmeasured
from kernelcount.render import render
from kernelcount.render.csv import COLUMNS

from . import samples


def test_each_variant_at_each_size_is_a_line():
    screen = render(samples.sweep(), format="csv")
    assert (
        screen
        == """\
command,name,size,status,reason,kernels,copies,fills,launches,graph_launches,kernel_time_ns,busy_ns,complete,stable,aten,generated,basis,at_least,transfers,paper_kernels,notes,call_time_ns,speedup,speed_verdict,result_verdict,max_abs,peak_memory
run,eager,100,measured,,2,0,0,2,0,2315,2315,true,true,,,measured,,,,,,,,,,
run,compile,100,measured,,1,0,0,1,0,1365,1365,true,true,,,measured,,,,,,,,,,
run,eager,1000000,measured,,2,0,0,2,0,5556,5556,true,true,,,measured,,,,,,,,,,
run,compile,1000000,measured,,1,0,0,1,0,3276,3276,true,true,,,measured,,,,,,,,,,
run,eager,100000000,measured,,2,0,0,2,0,463000,463000,true,true,,,measured,,,,,,,,,,
run,compile,100000000,measured,,1,0,0,1,0,273000,273000,true,true,,,measured,,,,,,,,,,
"""
    )


def test_cpu_operations_leave_the_gpu_columns_empty():
    screen = render(samples.on_cpu(), format="csv")
    assert (
        screen
        == """\
command,name,size,status,reason,kernels,copies,fills,launches,graph_launches,kernel_time_ns,busy_ns,complete,stable,aten,generated,basis,at_least,transfers,paper_kernels,notes,call_time_ns,speedup,speed_verdict,result_verdict,max_abs,peak_memory
run,eager,100000000,measured,,,,,,,,,true,true,2,0,measured,,,,,,,,,,
run,compile,100000000,measured,,,,,,,,,true,true,0,1,measured,,,,,,,,,,
"""
    )


def test_an_unknown_figure_is_an_empty_cell():
    screen = render(samples.incomplete(), format="csv")
    assert (
        screen
        == """\
command,name,size,status,reason,kernels,copies,fills,launches,graph_launches,kernel_time_ns,busy_ns,complete,stable,aten,generated,basis,at_least,transfers,paper_kernels,notes,call_time_ns,speedup,speed_verdict,result_verdict,max_abs,peak_memory
read,lost.json,,unmeasured,"2 launches, 1 kernel record (the profiler lost one)",1,,,2,0,25000,25000,false,,,,measured,,,,,,,,,,
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
    assert render(report, format="csv").endswith(",b a,,,,,,\n")


def test_times_results_and_memory_stand_behind_the_columns_that_were_there_before():
    names = ("eager", "compile")
    eager, other = (
        replace(c, timing=Timing(samples, 1, names), peak_memory=memory)
        for c, samples, memory in (
            (samples.eager(), (30.0, 31.0, 35.0), 4096),
            (samples.compiled(), (10.0, 10.5), 0),
        )
    )
    other = replace(other, numerics=Numerics("close", 1, 0.25))
    run = Run((eager, other), speeds=(None, Speed(3.0, 2.9, 3.1, "faster")))
    report = replace(samples.run_report(eager, other), runs=(run,))
    first, second = csv.reader(StringIO(render(report, format="csv").partition("\n")[2]))
    assert first[-6:] == ["31.0", "", "", "", "", "4096"]
    assert second[-6:] == ["10.25", "3.0", "faster", "close", "0.25", "0"]
    assert COLUMNS[20:] == (
        "notes", "call_time_ns", "speedup", "speed_verdict", "result_verdict", "max_abs",
        "peak_memory",
    )  # fmt: skip


def test_how_far_values_of_another_shape_are_apart_is_no_figure():
    other = replace(samples.compiled(), numerics=Numerics("different", 1, None, differs="shape"))
    report = samples.run_report(samples.eager(), other)
    *_, line = csv.DictReader(StringIO(render(report, format="csv")))
    assert (line["result_verdict"], line["max_abs"]) == ("different", "")
