"""Captures that were saved come back as they were; damaged ones are refused, never misread."""

import gzip
import json
from array import array
from dataclasses import fields, replace

import pytest

from kernelcount.errors import UnreadableError
from kernelcount.model import (
    NO_TIME,
    Break,
    Capture,
    Cost,
    Counters,
    Environment,
    Gap,
    Lane,
    Note,
    Numerics,
    Origin,
    Paper,
    Place,
    Price,
    Provenance,
    Recompilation,
    Records,
    Remedy,
    Row,
    Speed,
    Step,
    Sync,
    Target,
    Timing,
    Unmeasured,
    Work,
)  # fmt: skip
from kernelcount.model import Source as WhereFrom
from kernelcount.reading import read_file
from kernelcount.traces import saved
from kernelcount.traces.source import Source

RECORDS = Records(
    (Work("k", "kernel", "add", (1, 2, 3), (128, 1, 1), 32, 0), Work("Memset", "fill")),
    (Lane("0", "7"), Lane("1", "7")),
    array("i", [0, 1, 0]),
    array("i", [0, 0, 1]),
    array("q", [10, 20, NO_TIME]),
    array("q", [5, NO_TIME, NO_TIME]),
)
WHOLE = Capture(
    "eager",
    Environment("NVIDIA H200", "cuda", "2.11.0", "3.6.0", "0.1.0"),
    Target("add.py:add", ("f32[8]",)),
    RECORDS,
    launches=3,
    graph_launches=1,
    complete=True,
    stable=False,
    steps=(Step("ProfilerStep#1", 2, 10),),
    notes=(Note("duplicates", "1 record stood there twice"),),
    remedies=(
        Remedy(
            "TF32", "tried", "", Speed(7.9, 7.8, 8.0, "faster"), Numerics("different", 1, 0.5), 1,
            (Row("gemm", "mm", "kernel", 1, 5),),
        ),
        Remedy("CUDA graph", "not tried", "nothing is launched"),
    ),
)  # fmt: skip
ADD = WhereFrom((Origin("add", Place("add.py", 5, "add"), "layers.0", "forward", 1),), "forward")
OUTCOMES = (
    WHOLE,
    replace(
        WHOLE,
        name="waited",
        idle_ns=70,
        gaps=(Gap(5, 70, "add", "mul", (("Python", 70),)),),
        syncs=(
            Sync("item", "a.py", 3, "f", "item", "cudaStreamSynchronize", 0, 5, 1, ("trace",)),
            Sync("explicit", compiled=True),
        ),
    ),
    replace(
        WHOLE,
        name="timed",
        timing=Timing((31200.0, 31500.5), 8, ("eager", "compile")),
        price=Price(48_900_000, 2_220_000_000, 1),
        peak_memory=801_000_000,
        numerics=Numerics("close", 2, 0.5, 1e-6, 3, ("8 NaN in the same places",), 1e-7, 2e-7),
    ),
    replace(WHOLE, name="never waited", syncs=(), gaps=(), idle_ns=0),
    replace(WHOLE, name="sourced", provenance=Provenance((ADD, None, ADD), unknown="one is not")),
    replace(WHOLE, name="counted", counters=(Counters(800, 400, 90, 0.8, 0.9, 0.1), None, None)),
    Capture(
        "paper",
        basis="paper",
        paper=Paper(
            1,
            2,
            True,
            800,
            400,
            400,
            800,
            10**12,
            1000,
            (("bf16", 2),),
            ("bf16",),
            (Work("mine.scale", "kernel", read=400, written=400, at_most=True),),
        ),
    ),
    Capture(
        "compile",
        breaks=(
            Break("/a.py", 3, "f", "print", "not known", Cost(1, "2 and 1")),
            Break("", None, "", ""),
        ),
        breaks_cost=Cost(None, "not known"),
        recompilations=(Recompilation("/a.py", 2, "f", "n == 0.5"),),
        skipped_graphs=("mutated inputs",),
    ),
    Capture("compile", breaks=(), recompilations=(), skipped_graphs=()),
    Unmeasured("compile", "out of memory", None, 3),
    Unmeasured("lost", "the profiler lost it", replace(WHOLE, name="lost"), 3),
    Unmeasured("raises", "the function raised", None, 2),
)


def test_what_is_saved_comes_back_the_same():
    assert saved.load(saved.dump(OUTCOMES), "x") == OUTCOMES


@pytest.mark.parametrize("name", [f.name for f in fields(Capture)])
def test_each_field_of_a_capture_is_among_what_is_saved_here(name):
    seen = [o.seen if isinstance(o, Unmeasured) else o for o in OUTCOMES]
    bare = Capture("bare")
    assert any(getattr(c, name) != getattr(bare, name) for c in seen if c is not None)


def test_a_basis_that_nobody_knows_is_damage():
    data = saved.dump([Capture("paper", basis="paper")]).replace(b'"basis":"paper"', b'"basis":"x"')
    with pytest.raises(UnreadableError, match="damaged saved captures: Invalid enum value 'x'"):
        saved.load(data, "f.json")


def test_read_tells_saved_captures_by_their_content_compressed_or_not(tmp_path):
    path = tmp_path / "captures"
    for data in (saved.dump([WHOLE]), gzip.compress(saved.dump([WHOLE]))):
        path.write_bytes(data)
        (outcome,) = read_file(path)
        assert outcome.name == f"{path}:eager"
        assert outcome.records == RECORDS


def test_a_capture_written_by_hand_with_white_space_is_one(tmp_path):
    path = tmp_path / "captures.json"
    path.write_text("\n " + json.dumps(json.loads(saved.dump([WHOLE])), indent=4))
    assert saved.read(Source(path))[0].records == RECORDS


def test_the_file_holds_no_python_objects():
    document = json.loads(saved.dump(OUTCOMES))
    assert document["kernelcount_capture"] == saved.VERSION
    assert document["captures"][0]["records"]["start_ns"] == [10, 20, None]


def _changed(**values):
    document = json.loads(saved.dump([WHOLE]))
    capture = document["captures"][0]
    for key, value in values.items():
        target = capture["records"] if key in capture["records"] else capture
        target[key] = value
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    "change",
    [
        {"work": [0, 1]}, {"work": [0, 1, 2]}, {"work": [0, -1, 0]}, {"lane": [0, 0, 1 << 40]},
        {"work": [0, 1, 1 << 70]}, {"start_ns": [1 << 63, 2, 3]}, {"start_ns": ["1", 2, 3]},
        {"works": [], "lanes": []}, {"launches": -1}, {"launches": 1.5},
        {"graph_launches": 1 << 70},
        {"steps": [{"name": "s", "kernels": 1, "kernel_time_ns": 10**400}]}, {"complete": "yes"},
        {"provenance": {"sources": [None]}}, {"counters": [None]},
        {"idle_ns": -1},
        {"syncs": [{"kind": "item", "idle_ns": -1}]}, {"syncs": [{"kind": "nap"}]},
        {"gaps": [{"start_ns": 0, "duration_ns": -1, "before": "a", "after": "b"}]},
        {"counters": [{"dram_read": -1}, None, None]},
        {"works": [{"name": "k", "activity": "magic"}]}, {"notes": [{"code": 1, "detail": "x"}]},
    ],
    ids=lambda change: next(iter(change)),
)  # fmt: skip
def test_a_damaged_capture_is_refused(change):
    with pytest.raises(UnreadableError, match="damaged saved captures"):
        saved.load(_changed(**change), "x")


def test_every_truncation_is_refused():
    data = saved.dump([WHOLE]).rstrip()
    for length in range(len(data)):
        with pytest.raises(UnreadableError):
            saved.load(data[:length], "x")


def test_another_version_is_refused_by_its_number(tmp_path):
    path = tmp_path / "captures.json"
    path.write_text('{"kernelcount_capture": 99, "captures": []}')
    with pytest.raises(UnreadableError, match="of another version; this kernelcount reads 1"):
        read_file(path)


def test_a_file_of_no_captures_is_unreadable(tmp_path):
    path = tmp_path / "captures.json"
    path.write_bytes(saved.dump([]))
    with pytest.raises(UnreadableError, match="no capture in it"):
        read_file(path)


def test_exit_codes_that_there_are_not_become_not_measured():
    (outcome,) = saved.load(_changed(reason="lost", code=999), "x")
    assert outcome.code == 3


def test_negative_durations_are_no_time_travel():
    (outcome,) = saved.load(_changed(duration_ns=[-5, None, None]), "x")
    assert [r.duration_ns for r in outcome.records] == [0, None, None]


def test_a_region_cannot_be_asked_of_saved_captures(tmp_path):
    path = tmp_path / "captures.json"
    path.write_bytes(saved.dump([WHOLE]))
    with pytest.raises(Exception, match="saved captures hold no annotations"):
        read_file(path, region="r")
