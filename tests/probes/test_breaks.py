"""The adapter to what Dynamo tells its logs. Where torch changes it, these tests know it first."""

import importlib
import inspect
from pathlib import Path
from traceback import FrameSummary

import pytest
import torch

from kernelcount.model import Break, Recompilation
from kernelcount.probes.breaks import BreakWatch, about
from kernelcount.probes.compiler import CompilerWatch

HERE = str(Path(__file__))


def line_of(function, text):
    lines, first = inspect.getsourcelines(function)
    return first + next(i for i, line in enumerate(lines) if text in line)


def seen(function, *args, times=2, **options):
    """What is taken down of calls of a function that is compiled."""
    with CompilerWatch() as watch:
        compiled = torch.compile(function, backend="eager", **options)
        for _ in range(times):
            compiled(*args)
    return watch.broken


def prints(x):
    x = x + 1
    print("here")
    return x * 2


def asks(x):
    return prints(x * 3).relu()


def branches(x):
    x = x + 1
    if x.sum() > 0:
        x = x * 2
    return x


def reads(x):
    return x * x.sum().item()


def loops(x):
    for _ in range(3):
        x = x + 1
        print("here")
    return x


def marked(x):
    x = x + 1
    torch._dynamo.graph_break()
    return x * 2


@torch.compiler.disable
def apart(x):
    return x


def calls(x):
    return apart(x + 1) * 2


@pytest.mark.parametrize(
    ("function", "text", "reason"),
    [
        (prints, "print(", "print"),
        (branches, "if x.sum", "branch on a tensor's value"),
        (reads, "item()", "Tensor.item()"),
        (loops, "print(", "print"),
        (marked, "graph_break()", "torch._dynamo.graph_break()"),
        (calls, "apart(", "apart is disabled for the compiler"),
    ],
)
def test_a_break_is_told_with_its_line_and_what_it_is_about(function, text, reason):
    (found,) = seen(function, torch.ones(4)).breaks
    assert (found.file, found.line) == (HERE, line_of(function, text))
    assert (found.function, found.reason) == (function.__name__, reason)


ASKED_FOR = """Call to `torch._dynamo.graph_break()`
  Explanation: User-inserted graph break. Message: None"""


def test_a_break_that_torch_itself_asks_for_is_not_told_as_the_users():
    watch = BreakWatch()
    users = FrameSummary(HERE, 7, "train", lookup_line=False)
    torchs = str(Path(torch.__file__).parent / "optim" / "optimizer.py")
    for file, name in ((torchs, "_use_grad"), (torch.__file__, "inner")):
        watch.note_break(ASKED_FOR, [users, FrameSummary(file, 82, name, lookup_line=False)])
    watch.note_break(ASKED_FOR, [users])
    found = [(b.line, b.reason, b.explanation) for b in watch._breaks.values()]
    assert found == [
        (7, "Optimizer.step",
         "torch itself breaks the graph there, in _use_grad of torch/optim/optimizer.py."),
        (7, "inner of torch", found[1][2]),
        (7, "torch._dynamo.graph_break()", "User-inserted graph break. Message: None"),
    ]  # fmt: skip


def test_a_break_in_a_function_that_was_inlined_is_one():
    (found,) = seen(asks, torch.ones(4)).breaks
    assert (found.line, found.function) == (line_of(prints, "print("), "prints")


def test_what_is_compiled_whole_has_no_break():
    broken = seen(torch.relu, torch.ones(4))
    assert (broken.breaks, broken.recompilations, broken.untold) == ((), (), [])


def test_a_break_that_comes_again_for_other_sizes_is_one():
    with CompilerWatch() as watch:
        compiled = torch.compile(prints, backend="eager")
        for n in (4, 5, 6):
            compiled(torch.ones(n))
    assert len(watch.broken.breaks) == 1
    assert {r.function for r in watch.broken.recompilations} == {"prints"}


def test_dynamos_explanation_is_kept():
    (found,) = seen(prints, torch.ones(4)).breaks
    assert "builtin operator `print`" in found.explanation


def test_a_recompilation_is_told_with_the_guard_and_the_line_of_the_function():
    def scaled(x, n):
        return x * n

    with CompilerWatch() as watch:
        compiled = torch.compile(scaled, backend="eager")
        for n in (1.5, 2.5):
            compiled(torch.ones(4), n)
    first = scaled.__code__.co_firstlineno
    assert watch.broken.recompilations == (Recompilation(HERE, first, "scaled", "n == 1.5"),)


def test_a_part_after_a_break_bears_the_name_of_its_function():
    with CompilerWatch() as watch:
        compiled = torch.compile(reads, backend="eager")
        for n in (1.0, 2.0):
            compiled(torch.full((4,), n))
    (found,) = watch.broken.recompilations
    assert found.function == "reads"
    assert found.guard.endswith("== 4.0")


def test_at_the_limit_nothing_is_compiled_again():
    def tagged(x, tag):
        return x + len(tag)

    with CompilerWatch() as watch, torch._dynamo.config.patch(recompile_limit=3):
        compiled = torch.compile(tagged, backend="eager")
        for i in range(6):
            compiled(torch.ones(2), "t" * i)
    assert watch.limit
    assert len(watch.broken.recompilations) == 2
    assert watch.graphs == 3


def test_after_the_watch_nothing_is_taken_down():
    with CompilerWatch() as watch:
        pass
    torch.compile(prints, backend="eager")(torch.ones(4))
    assert watch.broken.breaks == ()


def test_a_watch_that_is_closed_keeps_what_it_saw():
    with CompilerWatch() as watch:
        torch.compile(prints, backend="eager")(torch.ones(4))
        watch.close()
        torch.compile(marked, backend="eager")(torch.ones(4))
    assert (watch.graphs, len(watch.broken.breaks)) == (2, 1)


@pytest.mark.parametrize(
    ("module", "attribute"),
    [("breaks", "torch._dynamo.symbolic_convert"), ("guards", "torch._dynamo.convert_frame")],
)
def test_a_torch_without_these_names_cannot_tell(monkeypatch, module, attribute):
    real = importlib.import_module

    def without(name, *rest):
        if name == attribute:
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(importlib, "import_module", without)
    with BreakWatch() as watch:
        pass
    assert (watch.breaks is None) == (module == "breaks")
    assert (watch.recompilations is None) == (module == "guards")
    assert watch.untold == [
        f"{'where graphs break' if module == 'breaks' else 'which guards fail'}"
    ]


def test_dynamos_log_of_breaks_takes_what_is_read_off_it():
    logged = torch._dynamo.symbolic_convert.InstructionTranslatorBase.log_graph_break
    assert list(inspect.signature(logged).parameters) == ["self", "code_options", "reason", "exc"]


def test_the_look_up_of_guards_takes_entries_and_a_frame():
    looked = torch._dynamo.convert_frame.get_and_maybe_log_recompilation_reasons
    assert list(inspect.signature(looked).parameters)[1] == "frame"
    assert "skip_logging" in inspect.signature(looked).parameters


def test_a_message_that_nobody_foresaw_is_its_first_line():
    message = "Something new\n  Explanation: It is  not known.\n  Hint: none"
    assert about(message) == ("Something new", "It is not known.")


def test_a_break_in_torchs_own_code_is_told_at_the_users_line():
    from traceback import FrameSummary

    ours = FrameSummary("/home/me/step.py", 14, "step", lookup_line=False)
    theirs = FrameSummary(torch.nn.__file__, 3, "forward", lookup_line=False)
    with BreakWatch() as watch:
        watch.note_break("Something new", [ours, theirs])
    assert watch.breaks == (Break("/home/me/step.py", 14, "step", "Something new"),)
