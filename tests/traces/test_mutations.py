"""Random and damaged traces: never a traceback, never a wrong count that looks like a right one."""

import json
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from traces import mutations

from kernelcount import app
from kernelcount.errors import KernelcountError
from kernelcount.render import FORMATS, render
from kernelcount.traces import elements, saved, source

USUAL = source.BLOCK
# The same ones each time; `python tests/traces/mutations.py` tries others, as long as one likes.
QUICK = settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(scope="module")
def seeds():
    return mutations.seeds()


@pytest.fixture
def path(tmp_path, monkeypatch):
    """Where the trace of an example goes; block sizes are put back after the test."""
    for module, name in ((source, "BLOCK"), (elements, "BLOCK"), (elements, "_LEAST")):
        monkeypatch.setattr(module, name, getattr(module, name))
    return tmp_path / "trace.json"


@QUICK
@given(seed=st.integers(0, 1 << 32), block=st.sampled_from((USUAL, 1, 50, 300, 2000)))
def test_a_damaged_trace_is_counted_as_json_loads_has_it_or_noted_or_refused(
    seeds, path, seed, block
):
    mutations.with_blocks_of(block)
    data = mutations.damaged(random.Random(seed), seeds)
    assert mutations.complaint(data, path) is None
    assert mutations.region_fault(path, "ProfilerStep#1") is None


@QUICK
@given(
    data=st.binary(max_size=300),
    head=st.sampled_from((b"", b"[", b'{"traceEvents": [', b"\x1f\x8b")),
)
def test_random_bytes_do_no_harm(path, data, head):
    assert mutations.complaint(head + data, path) is None


def _nested(inner):
    return st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)


_PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
_JSON = st.recursive(_PLAIN, _nested, max_leaves=8)
_FIELD = _JSON | st.sampled_from(("kernel", "cuda_runtime", "X", "cudaLaunchKernel", 1, 7, 2.5))
_ARGS = ("correlation", "device", "stream", "External id", "grid", "graph node id")
_FIELDS = {
    **dict.fromkeys(("name", "pid", "tid", "ts", "dur"), _FIELD),
    "args": _JSON | st.dictionaries(st.sampled_from(_ARGS), _FIELD),
}
_KERNEL = st.fixed_dictionaries({"ph": st.just("X"), "cat": st.just("kernel")}, optional=_FIELDS)
_ROW = st.fixed_dictionaries({}, optional={**_FIELDS, "ph": _FIELD, "cat": _FIELD})


@QUICK
@given(rows=st.lists(_KERNEL | _ROW | _JSON, max_size=6), indent=st.sampled_from((None, 1)))
def test_rows_of_any_values_are_counted_as_json_loads_has_it(path, rows, indent):
    document = json.dumps({"traceEvents": rows}, indent=indent)
    assert mutations.complaint(document.encode(), path) is None


@QUICK
@given(seed=st.integers(0, 1 << 32))
def test_damaged_saved_captures_are_read_or_refused_and_no_more(path, seed):
    chance = random.Random(seed)
    data = chance.choice(_SAVED)
    for _ in range(chance.choice((1, 1, 3))):
        data = chance.choice(mutations._BYTE_MUTATIONS)(chance, data, _SAVED)
    path.write_bytes(data)
    try:
        report = app.read([path], None, lambda *_: None).report
    except KernelcountError:
        return
    assert report.exit_code in (0, 3)
    for form in FORMATS:
        render(report, format=form, width=80, colour=False, full=False)


def _saved_captures():
    cases = Path(mutations.DATA) / "cases"
    names = ("FC37_three_profiler_steps.json", "FC01_two_launches_one_record.json")
    reports = [app.read([cases / name], None, lambda *_: None).report for name in names]
    return [saved.dump(report.outcomes) for report in reports]


_SAVED = _saved_captures()
