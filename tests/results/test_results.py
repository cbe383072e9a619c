"""What results show: the CLI's table, its JSON document, HTML for a notebook, a short repr."""

import copy
import json
import pickle
from dataclasses import FrozenInstanceError, is_dataclass

import pytest
import stubs
from render import samples

import kernelcount
from kernelcount.app import Answer
from kernelcount.errors import NotMeasuredError, UsageError
from kernelcount.model import Note, Report, Run, Unmeasured
from kernelcount.render import render
from kernelcount.render.figures import figures_of
from kernelcount.results import Comparison, Count, counts_of

PUBLIC = [name for name in kernelcount.__all__ if is_dataclass(getattr(kernelcount, name))]


def comparison(report):
    return Comparison(report, counts=counts_of(Answer(report), {}))


@pytest.fixture
def add_relu():
    """An H200's measurement of eager and compile."""
    return comparison(samples.add_relu())


def test_printed_it_is_the_table_of_the_command_line(add_relu):
    assert f"{add_relu}\n" == render(samples.add_relu(), format="table", width=80)
    assert add_relu.render("markdown") == render(samples.add_relu(), format="markdown")
    assert add_relu.render(full=True, width=60) == render(
        samples.add_relu(), format="table", width=60, full=True
    )
    with pytest.raises(UsageError, match="There is no format 'xml'"):
        add_relu.render("xml")


def test_its_document_is_that_of_the_command_line(add_relu):
    assert add_relu.to_dict() == json.loads(render(samples.add_relu(), format="json"))
    assert [v["name"] for v in add_relu["compile"].to_dict()["variants"]] == ["compile"]


def test_the_figures_are_those_of_the_table(add_relu):
    for count, figures in zip(add_relu, figures_of(samples.add_relu().runs[0]), strict=True):
        assert count.kernels == figures.kernels
        assert count.kernel_time_ns == figures.kernel_time_ns
        assert count.launches == figures.launches
        assert count.name == figures.name
        assert sum(count.kernel_names.values()) == count.kernels


def test_the_repr_is_one_short_line(add_relu):
    assert repr(add_relu) == "<Comparison eager: 2 kernels; compile: 1 kernel>"
    failed = comparison(Report("run", add_relu.environment, (Run((Unmeasured("x", "y" * 500),)),)))
    assert len(repr(failed[0])) < 120


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_class_of_values_is_frozen(name):
    value = object.__new__(getattr(kernelcount, name))
    with pytest.raises(FrozenInstanceError):
        value.mine = 1


def test_results_are_frozen_and_survive_copies_and_pickles(add_relu):
    first = add_relu[0]
    for value in (add_relu, first, first.kernels, first.rows[0], first.environment):
        for name in ("report", "counts", "kernels", "of", "name", "mine", "__class__"):
            with pytest.raises(FrozenInstanceError, match=f"assign to field '{name}'"):
                setattr(value, name, None)
            with pytest.raises(FrozenInstanceError, match=f"delete field '{name}'"):
                delattr(value, name)
    for other in (pickle.loads(pickle.dumps(add_relu)), copy.deepcopy(add_relu)):
        assert str(other) == str(add_relu)
        assert other["eager"].kernels == add_relu["eager"].kernels
    assert pickle.loads(pickle.dumps(add_relu[0].kernels)) == 2
    assert type(pickle.loads(pickle.dumps(add_relu[0].kernels))) is int


def test_a_result_equals_its_copy_and_no_other(add_relu):
    first, second = add_relu
    for value in (add_relu, first):
        again = pickle.loads(pickle.dumps(value))
        assert again == value
        assert hash(again) == hash(value)
    assert first != second
    assert first != "eager"
    assert pickle.loads(pickle.dumps(first.kernel_names)) == first.kernel_names
    assert type(pickle.loads(pickle.dumps(first.kernel_names))) is dict


FIGURES = [
    "kernels", "kernel_names", "kernels_at_least", "copies", "fills", "launches", "graph_launches",
    "generated", "library", "cpu_ops", "transfers", "bytes_read", "bytes_written",
    "graph_breaks", "recompiles", "syncs",
    "kernel_time_ns", "busy_ns", "call_time_ns", "speed", "numerics", "peak_memory", "verdict",
]  # fmt: skip


@pytest.mark.parametrize("name", FIGURES)
def test_no_figure_of_what_is_unmeasured_has_a_value(name):
    (count,) = stubs.compare(lambda: "the profiler lost a record", variants=("eager",))
    with pytest.raises(NotMeasuredError, match="the profiler lost a record"):
        getattr(count, name)


def test_every_figure_is_among_those_tested():
    other = {"name", "basis", "measured", "reason", "stable", "notes", "rows", "exit_code",
             "environment", "target"}  # fmt: skip
    properties = {n for c in Count.__mro__ for n, v in vars(c).items() if isinstance(v, property)}
    assert properties - other == set(FIGURES)


def test_what_a_budget_limits_is_told_as_budgets_have_it():
    from dataclasses import replace

    capture = replace(stubs.outcome("compile", ["k"], {}), breaks=(), recompilations=(), syncs=())
    count = comparison(Report("run", capture.environment, (Run((capture,)),)))[0]
    assert (count.graph_breaks, count.recompiles, count.syncs) == (0, 0, 0)
    (eager,) = stubs.compare(lambda: ["k"], variants=("eager",))
    for name in ("graph_breaks", "recompiles", "syncs"):
        with pytest.raises(NotMeasuredError, match=name):
            getattr(eager, name)


@pytest.mark.parametrize("code", ["unstable", "incomplete", "doubtful-values", "late-environment"])
def test_a_count_that_a_note_casts_doubt_on_is_none(code):
    from dataclasses import replace

    capture = replace(
        stubs.outcome("eager", ["add"], {}), notes=(Note(code, f"because of {code}"),)
    )
    count = comparison(Report("run", capture.environment, (Run((capture,)),)))[0]
    for name in ("kernels", "kernel_names", "launches"):
        with pytest.raises(NotMeasuredError, match=f"because of {code}"):
            getattr(count, name)


def test_a_notebook_shows_tables_and_the_whole_name_to_whoever_points_at_it(add_relu):
    html = add_relu["compile"]._repr_html_()
    assert html.startswith("<div>\n<p><b>add_relu</b> · ")
    assert '<td style="text-align: left">kernels</td><td style="text-align: right">1</td>' in html
    assert 'title="triton_poi_fused_add_relu_0"' in html
    assert html.count("<table>") == html.count("</table>") == 2


def test_nothing_of_a_name_is_taken_for_html():
    report = samples.evil()
    html = comparison(report)._repr_html_()
    assert "<script" not in html
    assert "\x1b" not in html
    for tag in ("p", "table", "ul", "tr", "td", "div"):
        assert html.count(f"<{tag}>") + html.count(f"<{tag} ") == html.count(f"</{tag}>")
