"""Whose line it is, of the frames of a stack."""

import sysconfig
from pathlib import Path

import kernelcount
from kernelcount.model import Place
from kernelcount.places import first_of_user, is_users

PACKAGES = Path(sysconfig.get_paths()["purelib"])
TORCH = str(PACKAGES / "torch" / "nn" / "modules" / "module.py")


def test_the_innermost_frame_outside_of_torch_is_the_users():
    mine, callers = Place("/home/me/model.py", 5, "forward"), Place("/home/me/main.py", 9, "main")
    assert first_of_user([Place(TORCH, 1, "_call_impl"), mine, callers]) == mine


def test_a_library_that_calls_torch_counts_as_the_users():
    assert is_users(str(PACKAGES / "transformers" / "models" / "llama" / "modeling_llama.py"))


def test_torch_python_and_kernelcount_are_not_the_users_but_its_scenarios_are():
    ours = Path(kernelcount.__file__).parent
    assert not any(map(is_users, (TORCH, contextlib_file(), str(ours / "app.py"), "<string>")))
    assert is_users(str(ours / "_scenarios" / "add_relu.py"))


def test_a_stack_without_the_users_frames_gives_nothing():
    assert first_of_user([Place(TORCH, 1, "f"), Place("<frozen importlib>", 2, "g")]) is None


def contextlib_file():
    import contextlib

    return contextlib.__file__
