"""``kernelcount diff`` on the command line: files, flags, exit codes, streams."""

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from render.samples import capture, compiled, eager
from traces.rows import annotation, kernel, launch

from kernelcount.model import Break, Unmeasured
from kernelcount.render.diff import FORMS
from kernelcount.traces import saved


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Write saved captures, and traces of these rows; both bear the names they are given."""
    monkeypatch.chdir(tmp_path)

    def written(**given):
        for name, content in given.items():
            rows = isinstance(content[0], dict)
            text = json.dumps({"traceEvents": content}).encode() if rows else saved.dump(content)
            (tmp_path / name).write_bytes(text)
        return [*given]

    return written


MORE = capture("compile", ("k", "kernel", None, 9), ("l", "kernel", None, 9))
ONE = [launch(1, 10), kernel(1, 100, name="a")]
TWO = [launch(1, 10), kernel(1, 100, name="a"), launch(2, 20), kernel(2, 200, name="b")]
LOST = [launch(1, 10), launch(2, 20), kernel(1, 100)]


def test_a_diff_without_limits_shows_and_exits_0(kernelcount, files):
    code, out, err = kernelcount("diff", *files(a=[eager(), compiled()], b=[eager(), MORE]))
    assert (code, err) == (0, "")
    assert "compile: 2 kernels instead of 1" in out


def test_a_regression_beyond_a_limit_is_exit_1(kernelcount, files):
    names = files(a=[eager(), compiled()], b=[eager(), MORE])
    assert kernelcount("diff", *names, "--max-kernels", "+0")[0] == 1
    assert kernelcount("diff", *names, "--max-kernels", "+1")[0] == 0
    assert kernelcount("diff", *names, "--max-kernels", "+0", "--variant", "eager")[0] == 0
    assert kernelcount("diff", *reversed(names), "--max-kernels=-1", "--variant=compile")[0] == 0


def test_annotations_are_at_files_as_they_are_named_from_here(kernelcount, files, tmp_path):
    at = Break(str(tmp_path / "src" / "net.py"), 6, "step", "print")
    old, new = (replace(c, breaks=b) for c, b in ((compiled(), ()), (MORE, (at,))))
    names = files(a=[eager(), old], b=[eager(), new])
    limit = ("--max-breaks", "+0")
    code, out, _ = kernelcount("diff", *names, *limit, "--format", "github")
    assert code == 1
    assert out.startswith("::error file=src/net.py,line=6,title=a → b%2C compile")
    document = json.loads(kernelcount("diff", *names, *limit, "--format", "json")[1])
    assert [b["file"] for v in document["variants"] for b in v["breaks"]] == ["src/net.py"]


def test_traces_are_held_against_each_other_and_as_json(kernelcount, files):
    code, out, _ = kernelcount("diff", *files(a=ONE, b=TWO), "--format", "json")
    assert code == 0
    rows = json.loads(out)["rows"]
    assert [(r["name"], r["change"]) for r in rows] == [("a", "same"), ("b", "appeared")]


def test_a_region_is_compared_alone(kernelcount, files):
    rows = [*TWO, annotation("part", 15, 10)]
    names = files(a=[*ONE, annotation("part", 15, 10)], b=rows)
    code, out, _ = kernelcount("diff", *names, "--region", "part", "--format", "json")
    assert code == 0
    assert [(r["name"], r["change"]) for r in json.loads(out)["rows"]] == [("b", "appeared")]


@pytest.mark.parametrize("form", FORMS)
def test_what_is_incomplete_or_unmeasured_is_exit_3_with_the_reason(kernelcount, files, form):
    code, out, err = kernelcount("diff", *files(a=ONE, b=LOST), "--format", form)
    assert code == 3
    assert "no device record" in err
    assert "no device record" in out
    hung = Unmeasured("compile", "it hung")
    names = files(a=[eager(), compiled()], b=[eager(), hung])
    code, out, _ = kernelcount("diff", *names, "--max-kernels", "+0", "--allow-undecided")
    assert code == 3
    assert "Unknown for compile: after: it hung" in out


def test_an_undecided_limit_is_exit_3_unless_that_is_allowed(kernelcount, files):
    names = files(a=[eager()], b=[eager()])
    assert kernelcount("diff", *names, "--max-memory", "+0")[0] == 3
    code, out, _ = kernelcount(
        "diff", *names, "--max-memory", "+0", "--allow-undecided", "--format", "junit"
    )
    assert code == 0
    assert [e.tag for e in ET.fromstring(out.encode()).iter("skipped")] == ["skipped"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["a", "none"], "none: no such file"),
        (["a", "bad"], "bad: "),
        (["a"], "B"),
        (["a", "a", "--max-kernels", "2"], "write +2 for 2 more than before"),
        (["a", "a", "--variant", "compile"], "a has none of this name; it has eager"),
        (["a", "a", "--region", "x"], "saved captures hold no annotations"),
        (["a", "a", "--format", "junitt"], "did you mean junit?"),
        (["a", "a", "--output", "a"], "this file is read"),
    ],
)
def test_a_bad_file_or_flag_is_exit_2_that_says_what_to_do(kernelcount, files, arguments, said):
    files(a=[eager()])
    Path("bad").write_text("neither")
    code, out, err = kernelcount("diff", *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert "Traceback" not in err


def test_a_bad_file_is_a_document_where_json_was_asked_for(kernelcount, files):
    code, out, _ = kernelcount("diff", *files(a=[eager()]), "none", "--format", "json")
    assert code == 2
    assert json.loads(out)["command"] == "diff"
    assert json.loads(out)["error"]["code"] == 2


def test_the_result_goes_to_a_file_where_one_is_named(kernelcount, files, tmp_path):
    names = files(a=ONE, b=TWO)
    code, out, err = kernelcount("diff", *names, "--output", "out.md", "--format", "markdown")
    assert (code, out, err) == (0, "", "")
    assert (tmp_path / "out.md").read_text().startswith("**a → b**\n")


def test_help_names_every_limit_and_format(kernelcount):
    from kernelcount.differences.allowances import LIMITS

    code, out, _ = kernelcount("diff", "--help")
    assert code == 0
    for name in LIMITS:
        assert f"--max-{name}" in out
    assert "csv, github or junit" in " ".join(out.split())
