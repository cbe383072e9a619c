"""Whose line it is: the user's own before an installed package's, never torch's or ours."""

import json
import sys
from pathlib import Path

import kernelcount
from kernelcount.callers import Site, is_users, site

USERS = """
def f(there):
    return there()


def g(there):
    return (
        f(there)
    )
"""


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


def test_a_file_below_the_current_folder_is_told_as_it_is_seen_from_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert made(tmp_path, file="models/net.py")(here).file == "models/net.py"


def test_what_torch_does_is_at_the_line_that_asks_torch_for_it(tmp_path):
    in_torch = made(tmp_path, "torch._tensor_str", "torch/_tensor_str.py")
    assert made(tmp_path)(lambda: in_torch(here)).function == "<lambda>"


def test_the_standard_library_is_passed_over(tmp_path):
    loads = "import json\ndef g(there):\n    return json.loads('{}', object_hook=there)\n"
    found = made(tmp_path, source=loads)(here)
    assert (found.line, found.function) == (3, "g")


def test_in_a_package_that_is_installed_the_users_line_that_calls_it_is_told(tmp_path):
    in_package = made(tmp_path, "pack", "site-packages/pack.py")
    assert made(tmp_path)(lambda: in_package(here)).function == "<lambda>"


def test_a_target_that_is_installed_has_its_own_line_told(tmp_path):
    in_package = made(tmp_path, "pack", "site-packages/pack.py")
    found = _called_by_us(in_package)
    assert (Path(found.file).name, found.line) == ("pack.py", 3)


def _called_by_us(function):
    """The site that a function of a package has, when nobody but us has called it."""
    ours = {"__name__": "kernelcount.capture", "function": function, "here": here}
    exec("def call():\n    return function(here)", ours)
    return ours["call"]()


def test_beyond_the_call_of_the_function_nobody_is_asked():
    assert _called_by_us(lambda asks: asks()) is not None  # the line of the lambda
    ours = {"__name__": "kernelcount.capture", "here": here}
    exec("def call():\n    return here()", ours)
    assert ours["call"]() is None
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


def test_files_of_python_of_packages_and_ours_are_not_the_users():
    ours = Path(kernelcount.__file__).parent
    assert not is_users(json.__file__)
    assert not is_users("<frozen importlib._bootstrap>")
    assert not is_users(str(ours / "capture.py"))
    assert not is_users("/home/me/.local/lib/python3.12/site-packages/pack/mod.py")
    assert is_users(str(ours / "_scenarios" / "add_relu.py"))
    assert is_users("/home/me/train.py")
