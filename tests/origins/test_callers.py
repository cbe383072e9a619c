"""Whose line it is: never torch's, Triton's, Python's or ours."""

import contextlib
import json
import sys
import sysconfig
from dataclasses import replace
from pathlib import Path
from traceback import FrameSummary

import pytest
import torch

import kernelcount
from kernelcount.model import (
    Beside,
    Break,
    Capture,
    Origin,
    Place,
    Provenance,
    Recompilation,
    Source,
    Sync,
    Unmeasured,
)
from kernelcount.origins.callers import (
    Site,
    beside_seen_from_here,
    first_of_user,
    innermost,
    is_users,
    is_users_own,
    line_of,
    plain,
    seen_from_here,
    site,
)

OURS = Path(kernelcount.__file__).parent
PACKAGES = Path(sysconfig.get_paths()["purelib"])
IN_TORCH = str(Path(torch.__file__).parent / "nn" / "modules" / "module.py")
LLAMA = str(PACKAGES / "transformers" / "models" / "llama" / "modeling_llama.py")

USERS = """
def f(there):
    return there()


def g(there):
    return (
        f(there)
    )
"""


# ── whose a file is ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "file",
    [
        IN_TORCH,
        contextlib.__file__,
        json.__file__,
        "<string>",
        "<frozen importlib._bootstrap>",
        str(OURS / "capture" / "calls.py"),
    ],
)
def test_files_of_torch_of_python_and_ours_are_never_the_users(file):
    assert not is_users(file)
    assert not is_users_own(file)


def test_tritons_files_are_not_the_users_where_it_is_installed(tmp_path, monkeypatch):
    from kernelcount.origins import callers

    (tmp_path / "triton").mkdir()
    (tmp_path / "triton" / "__init__.py").touch()
    for cached in (callers._libraries, is_users):
        monkeypatch.setattr(callers, cached.__name__, cached.__wrapped__)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "triton", raising=False)
    assert not callers.is_users(str(tmp_path / "triton" / "runtime" / "jit.py"))
    assert callers.is_users(str(tmp_path / "mine.py"))


@pytest.mark.parametrize(
    "file", ["/home/me/train.py", "train.py", str(OURS / "_scenarios" / "add_relu.py")]
)
def test_all_other_files_and_our_scenarios_are_the_users(file):
    assert is_users(file)
    assert is_users_own(file)


@pytest.mark.parametrize(
    "file", [LLAMA, "/home/me/.local/lib/python3.12/site-packages/pack/mod.py"]
)
def test_a_library_that_calls_torch_counts_as_the_users_and_is_not_their_own(file):
    assert is_users(file)
    assert not is_users_own(file)


def test_a_package_below_the_folder_of_python_itself_is_not_pythons():
    below = Path(sysconfig.get_paths()["stdlib"], "site-packages", "pack", "mod.py")
    assert is_users(str(below))


# ── the frames of a stack ────────────────────────────────────────────────────────────────────────


def test_the_innermost_frame_outside_of_torch_is_the_users():
    mine, main = Place("/home/me/model.py", 5, "forward"), Place("/home/me/main.py", 9, "main")
    assert first_of_user([Place(IN_TORCH, 1, "_call_impl"), mine, main]) == mine


def test_a_stack_without_the_users_frames_gives_nothing():
    frames = [Place(IN_TORCH, 1, "f"), Place("<frozen importlib>", 2, "g")]
    assert first_of_user(frames) is None


def summary(file, line):
    return FrameSummary(file, line, "f", lookup_line=False)


MINE, THEIRS = summary("/home/me/step.py", 14), summary(IN_TORCH, 3)


def test_of_a_stack_from_the_outside_in_it_is_the_last_that_is_the_users():
    outer, library = summary("/home/me/main.py", 2), summary(LLAMA, 7)
    assert innermost([outer, MINE, THEIRS]) is MINE
    assert innermost([outer, MINE, summary(contextlib.__file__, 7)]) is MINE
    assert innermost([outer, MINE, library, THEIRS]) is library


def test_where_no_frame_is_the_users_it_is_the_innermost():
    assert innermost([summary(torch.__file__, 1), THEIRS]) is THEIRS


# ── the frames of what runs ──────────────────────────────────────────────────────────────────────


def made(folder, name="users", file="users.py", source=USERS, function="g"):
    """A function of a module of this name, in this file."""
    path = Path(folder, file)
    space = {"__name__": name}
    exec(compile(source, str(path), "exec"), space)
    return space[function]


def here(*_):
    """Where the code is that calls this."""
    return site(sys._getframe(1))


def test_the_innermost_frame_is_told_with_file_line_and_function(tmp_path):
    assert made(tmp_path)(here) == Site(str(tmp_path / "users.py"), 3, "f")


def test_what_torch_does_is_at_the_line_that_asks_torch_for_it(tmp_path):
    in_torch = made(tmp_path, "torch._tensor_str", torch._tensor_str.__file__)
    assert made(tmp_path)(lambda: in_torch(here)).function == "<lambda>"


def test_the_standard_library_is_passed_over(tmp_path):
    loads = "import json\ndef g(there):\n    return json.loads('{}', object_hook=there)\n"
    found = made(tmp_path, source=loads)(here)
    assert (found.line, found.function) == (3, "g")


def test_in_a_package_that_is_installed_its_own_line_is_told(tmp_path):
    in_package = made(tmp_path, "pack", "site-packages/pack.py")
    found = made(tmp_path)(lambda: in_package(here))
    assert (Path(found.file).name, found.line) == ("pack.py", 3)


def called_by_us(function):
    """What is told in a function that nobody but us has called."""
    ours = {"function": function, "here": here}
    exec(
        compile("def call():\n    return function(here)", OURS / "capture" / "calls.py", "exec"),
        ours,
    )
    return ours["call"]()


def test_beyond_the_call_of_the_function_nobody_is_asked():
    assert called_by_us(lambda asks: asks()) is not None  # the line of the lambda
    assert called_by_us(here) is None
    assert site(None) is None


def test_what_inductor_wrote_is_at_the_line_that_runs_it(tmp_path):
    name = "torch._inductor.runtime.compile_tasks.cabc"
    generated = made(tmp_path, name, "torchinductor_me/ab/cabc.py")
    found = made(tmp_path)(lambda: generated(here))
    assert found.function == "<lambda>"
    assert found.compiled


def test_what_follows_a_graph_break_bears_the_functions_own_name(tmp_path):
    resumed = "def torch_dynamo_resume_in_step_at_15(there):\n    return there()\n"
    rest = made(tmp_path, source=resumed, function="torch_dynamo_resume_in_step_at_15")
    assert rest(here).function == "step"


def broken_lines(source):
    """The lines at which code that Dynamo wrote for `f` asks for a value."""
    from torch.utils._python_dispatch import TorchDispatchMode

    lines = []

    class Watch(TorchDispatchMode):
        @classmethod
        def ignore_compile_internals(cls):
            return True

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if "_local_scalar_dense" in str(func):
                lines.append(site(sys._getframe().f_back).line)
            return func(*args, **(kwargs or {}))

    space = {"__name__": "users", "print": print}
    exec(compile(source, "/home/me/users.py", "exec"), space)
    with Watch():
        torch.compile(space["f"], backend="eager")(torch.ones(()))
    return lines


def test_what_dynamo_makes_ready_for_a_break_is_at_the_line_of_the_break():
    source = 'def f(x):\n    x = x + 1\n    print(f"{x}")\n    x = x * 2\n    print(f"{x}")\n'
    assert broken_lines(source) == [3, 5]
    assert broken_lines('def f(x): x = x + 1; print(f"{x}"); return x * 2') == [1]


def test_a_function_that_dynamo_has_not_written_is_at_the_line_that_runs():
    def f():
        return [sys._getframe(),
                     None][0]  # fmt: skip

    frame = f()
    assert line_of(frame) == frame.f_lineno


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("step", "step"),
        ("torch_dynamo_resume_in_step_at_14", "step"),
        ("torch_dynamo_resume_in_torch_dynamo_resume_in_step_at_14_at_20", "step"),
    ],
)
def test_names_are_those_that_the_user_gave(name, function):
    assert plain(name) == function


# ── the names of files in a report ───────────────────────────────────────────────────────────────


def captured(file):
    place = Place(file, 5)
    return Capture(
        "compile",
        provenance=Provenance((Source((Origin("add", place), Origin("mul"))), None), (place,)),
        breaks=(Break(file, None, "f", "print"),),
        recompilations=(Recompilation(file, 1, "f", "n == 2"),),
        syncs=(Sync("item", file, 5), Sync("item")),
    )


@pytest.mark.parametrize(
    ("file", "shown"),
    [
        ("{here}/models/net.py", "models/net.py"),
        ("models/net.py", "models/net.py"),
        ("/elsewhere/net.py", "/elsewhere/net.py"),
    ],
)
def test_files_are_relative_to_the_current_folder_where_they_are_inside_of_it(
    tmp_path, monkeypatch, file, shown
):
    monkeypatch.chdir(tmp_path)
    capture, expected = captured(file.format(here=Path.cwd())), captured(shown)
    assert seen_from_here(capture) == expected
    assert seen_from_here(Unmeasured("x", "why", capture)) == Unmeasured("x", "why", expected)
    beside = beside_seen_from_here(Beside(capture, provenance=capture.provenance))
    assert beside == Beside(expected, provenance=expected.provenance)


def test_what_is_not_known_stays_so_and_what_is_none_stays_none():
    for capture in (Capture("eager"), replace(Capture("eager"), breaks=(), syncs=())):
        assert seen_from_here(capture) == capture
    assert seen_from_here(Unmeasured("x", "why")) == Unmeasured("x", "why")


def test_where_the_folder_is_gone_files_stay_as_they_are(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert seen_from_here(captured(str(tmp_path / "a.py"))) == captured(str(tmp_path / "a.py"))
