"""What is shown of graph breaks, recompilations and skipped CUDA graphs."""

import json
from dataclasses import replace

from kernelcount.model import Break, Cost, Note, Price, Recompilation
from kernelcount.render import render
from kernelcount.render.breaks import section
from kernelcount.render.explain import shown
from kernelcount.render.figures import figures
from kernelcount.render.layout import Page
from tests.render import samples

PRINT = Break(
    "/home/me/step.py",
    14,
    "step",
    "print",
    "Dynamo does not know how to trace builtin operator `print`",
    Cost(1, "on paper 2 with the break and 1 without"),
)
BRANCH = Break("/home/me/step.py", 20, "step", "branch on a tensor's value")
AGAIN = Recompilation("/home/me/step.py", 12, "step", "n == 0.5")
LIMIT = Note("recompile-limit", "'compile' ran as eager code: the recompile_limit (8) was reached")


def report(*breaks, on_paper=False, notes=(), **given):
    capture = replace(samples.compiled(*notes), breaks=breaks, **given)
    if on_paper:
        capture = replace(capture, basis="paper")
    return samples.run_report(samples.eager(), capture)


def said(*breaks, **given):
    return " ".join(render(report(*breaks, **given), format="table", width=120).split())


def entry(*breaks, **given):
    """The document's entry of the compiled variant."""
    text = render(report(*breaks, **given), format="json")
    return json.loads(text)["variants"][1]


def listed(*breaks, **given):
    found = section([figures(report(*breaks, **given).outcomes[1])])
    lines = [line for one in found for line in shown(one, Page(80, full=False, explain=True))]
    return "\n".join("".join(text for text, _ in line).rstrip() for line in lines)


def test_one_break_is_told_with_its_line_and_what_it_costs():
    text = said(PRINT, on_paper=True)
    assert "note: compile: graph break at step.py:14 (print): costs 1 kernel. " in text


def test_beside_what_is_measured_the_cost_is_said_to_be_on_paper():
    assert "step.py:14 (print): costs 1 kernel on paper. " in said(PRINT)


def test_several_breaks_are_one_line_with_what_they_cost_together():
    text = said(PRINT, BRANCH, breaks_cost=Cost(3))
    assert (
        "2 graph breaks, the first at step.py:14 (print): together they cost 3 kernels on paper."
        in text
    )
    assert "step.py:20" not in text


def test_a_cost_that_is_not_known_is_no_zero():
    text = said(replace(PRINT, cost=Cost(None, "nobody knows")))
    assert "step.py:14 (print): cannot tell how many kernels it costs." in text


def test_where_it_is_known_of_some_breaks_alone_that_is_told():
    unknown = Cost(None, "some stay")
    text = said(PRINT, BRANCH, breaks_cost=unknown)
    assert "some of them cost 1 kernel on paper, and of the others it cannot be told." in text
    text = said(replace(PRINT, cost=Cost(0)), BRANCH, breaks_cost=unknown, on_paper=True)
    assert "(print): some of them cost no kernel, and of the others it cannot be told." in text


def test_a_break_may_cost_none_or_save_one():
    assert "(print): costs no kernel on" in said(replace(PRINT, cost=Cost(0)))
    assert "(print): saves 1 kernel on" in said(replace(PRINT, cost=Cost(-1)))


def test_on_the_cpu_a_break_is_told_without_a_cost_in_kernels():
    cpu = samples.on_cpu()
    capture = replace(cpu.outcomes[1], breaks=(PRINT,))
    whole = samples.run_report(cpu.outcomes[0], capture, environment=cpu.environment)
    assert "graph break at step.py:14 (print)." in " ".join(render(whole, format="table").split())


def test_recompilations_are_told_with_the_guard_and_not_counted_twice():
    text = said(recompilations=(AGAIN, AGAIN), price=Price(9, 8, 2))
    assert "recompiled 2 times, the last time since n == 0.5 failed for step at step.py:12." in text
    assert "2 recompiles" not in text


def test_of_the_recompile_limit_one_sentence_is_enough():
    text = said(recompilations=(AGAIN,), notes=(LIMIT,))
    assert "the recompile_limit (8) was reached" in text
    assert "n == 0.5" not in text


def test_skipped_cuda_graphs_are_told_once():
    note = Note("cudagraphs-skipped", "CUDA graphs skipped (1): mutated inputs")
    text = said(notes=(note,), skipped_graphs=("mutated inputs",))
    assert text.count("mutated inputs") == 1


def test_where_there_is_nothing_to_tell_nothing_is_said():
    text = said(recompilations=(), skipped_graphs=())
    assert "break" not in text
    assert "recompile" not in text


def test_what_holds_of_every_break_is_said_once():
    why = Cost(None, "the function goes backward itself")
    text = " ".join(
        listed(replace(PRINT, cost=why), replace(BRANCH, cost=why), breaks_cost=why).split()
    )
    assert text.count(why.why) == 1
    assert "Cannot tell how many kernels any of them costs, or all together: the fun" in text
    assert "1 Dynamo does not know how to trace" in text


def test_the_long_listing_has_every_one_of_them():
    text = listed(
        PRINT,
        replace(BRANCH, cost=Cost(None, "what follows hangs on a value that is read")),
        breaks_cost=Cost(None, "what follows hangs on a value that is read"),
        recompilations=(AGAIN,),
        skipped_graphs=("mutated inputs",),
    )
    assert text == (
        """\
  compile: graph breaks
      line         in     what                         kernels
  1   step.py:14   step   print                             +1
  2   step.py:20   step   branch on a tensor's value         ?
  1 costs 1 kernel: on paper 2 with the break and 1 without. Dynamo does not
  know how to trace builtin operator `print`.
  2 cannot tell how many kernels it costs: what follows hangs on a value that is
  read.
  Cannot tell how many kernels they cost together: what follows hangs on a value
  that is read.
  compile: compiled again
      line         in     guard that failed
  1   step.py:12   step   n == 0.5
  compile: CUDA graphs skipped
  mutated inputs."""
    )


def test_what_is_explained_has_the_listing():
    for form in ("table", "markdown"):
        text = render(report(PRINT), format=form, explain=True)
        assert "compile: graph breaks" in text
        assert "Dynamo does not know how to trace builtin operator" in " ".join(text.split())
        assert "compile: graph breaks" not in render(report(PRINT), format=form, full=True)


def test_the_document_has_them_one_by_one():
    found = entry(PRINT, recompilations=(AGAIN,), skipped_graphs=("mutated inputs",))
    assert (found["graph_breaks"], found["recompiles"]) == (1, 1)
    assert found["breaks"] == [
        {
            "file": "/home/me/step.py",
            "line": 14,
            "function": "step",
            "reason": "print",
            "explanation": "Dynamo does not know how to trace builtin operator `print`",
            "costs_kernels": 1,
            "why": "on paper 2 with the break and 1 without",
        }
    ]
    assert found["breaks_cost"] == {
        "kernels": 1,
        "why": "on paper 2 with the break and 1 without",
    }
    assert found["recompilations"] == [
        {"file": "/home/me/step.py", "line": 12, "function": "step", "guard": "n == 0.5"}
    ]
    assert found["skipped_cudagraphs"] == ["mutated inputs"]


def test_none_is_a_zero_and_not_known_is_null():
    found = entry(recompilations=(), skipped_graphs=())
    assert (found["graph_breaks"], found["breaks"], found["breaks_cost"]) == (0, [], None)
    text = render(samples.add_relu(), format="json")
    for found in json.loads(text)["variants"]:
        assert (found["graph_breaks"], found["recompiles"]) == (None, None)
        assert found["skipped_cudagraphs"] is None


def test_escapes_in_names_do_not_reach_the_screen():
    evil = replace(PRINT, file="/x/\x1b[2Jstep.py", reason="\x1b[1m", explanation="\x1b[0m")
    assert "\x1b" not in render(report(evil), format="table", explain=True)
