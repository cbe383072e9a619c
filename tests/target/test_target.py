from __future__ import annotations

import functools
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch

from kernelcount import target
from kernelcount.errors import NotMeasuredError, UsageError, UserCodeError
from kernelcount.target import frames, importing, load, user_traceback


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty current directory; what importing changes is put back afterwards."""
    modules = set(sys.modules)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p not in ("", os.fspath(tmp_path))])
    monkeypatch.setattr(sys, "argv", ["kernelcount", "run", "--size", "8"])
    monkeypatch.setattr(importing, "_modules", {})
    yield tmp_path
    for name in set(sys.modules) - modules:
        # Only those of the test: torch, for one, cannot be imported a second time.
        module = vars(sys.modules[name])
        places = [module.get("__file__") or "", *module.get("__path__", [])]
        if any(str(place).startswith(str(tmp_path)) for place in places):
            del sys.modules[name]


def write(path: str, text: str = "") -> Path:
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(textwrap.dedent(text).lstrip("\n"))
    return file


def refusal(spec: str, error: type[Exception] = UsageError) -> str:
    with pytest.raises(error) as caught:
        load(spec)
    text = str(caught.value)
    if error is UsageError:
        assert 1 <= len(text.splitlines()) <= 3
        assert "Traceback" not in text
    return text


# ── files ────────────────────────────────────────────────────────────────────────────────────────


def test_a_function_in_a_file_is_loaded_by_path(folder):
    write("sub/add.py", "def add(x, y): return x + y")
    loaded = load("sub/add.py:add")
    assert loaded.spec == "sub/add.py:add"
    assert loaded.name == "add"
    assert loaded.function(1, 2) == 3
    assert loaded.module.__name__ == "add"
    assert loaded.module.__file__ == str(folder / "sub" / "add.py")


def test_the_last_colon_separates_file_and_name():
    write("od:d/add.py", "def add(x): return x")
    assert load("od:d/add.py:add").function(1) == 1


def test_a_file_named_twice_runs_once():
    write("once.py", "RUNS = []\nRUNS.append(1)\ndef f(): return RUNS\ndef g(): return RUNS")
    first, second = load("once.py:f"), load("./once.py:g")
    assert first.module is second.module
    assert second.function() == [1]


def test_a_file_and_its_module_name_are_one_module():
    write("both.py", "def f(): pass")
    assert load("both.py:f").module is load("both:f").module


def test_string_annotations_dataclasses_and_pickle_work_while_the_file_runs():
    write(
        "config.py",
        """
        from __future__ import annotations
        import dataclasses, pickle, typing

        @dataclasses.dataclass
        class Config:
            gain: float = 2.0
            label: typing.ClassVar[str] = "x"

        CONFIG = pickle.loads(pickle.dumps(Config()))
        def scaled(x): return x * CONFIG.gain
        """,
    )
    assert load("config.py:scaled").function(3) == 6.0


def test_a_sibling_can_be_imported():
    write("kernels/helper.py", "BIAS = 5")
    write("kernels/main.py", "import helper\ndef f(x): return x + helper.BIAS")
    assert load("kernels/main.py:f").function(1) == 6


def test_a_sibling_does_not_shadow_the_standard_library(folder):
    write("kernels/colorsys.py", "raise RuntimeError('not the standard one')")
    write("kernels/main.py", "import colorsys\ndef f(): return colorsys.rgb_to_hsv(0, 0, 0)")
    assert load("kernels/main.py:f").function() == (0.0, 0.0, 0)
    assert sys.path[-1] == str(folder / "kernels")


@pytest.mark.parametrize("name", ["random", "torch", "pytest", "kernelcount", "my-file", "v1.2"])
def test_a_file_whose_name_is_taken_or_no_name_is_loaded_under_another(name):
    before = sys.modules.get(name)
    write(f"{name}.py", "import torch\nclass C: pass\ndef f(x): return torch.relu(x) + 1")
    loaded = load(f"{name}.py:f")
    assert loaded.function(torch.zeros(1)).item() == 1
    assert loaded.module.__name__.isidentifier()
    assert loaded.module.__name__ != name
    assert sys.modules[loaded.module.__name__] is loaded.module
    assert sys.modules.get(name) is before


def test_two_files_of_the_same_name_are_two_modules():
    write("a/model.py", "def f(): return 'a'")
    write("b/model.py", "def f(): return 'b'")
    assert load("a/model.py:f").function() == "a"
    assert load("b/model.py:f").function() == "b"
    assert load("a/model.py:f").function() == "a"


def test_a_file_that_failed_can_be_loaded_once_it_is_mended():
    write("broken.py", "1 / 0")
    refusal("broken.py:f", UserCodeError)
    assert "broken" not in sys.modules
    write("broken.py", "def f(): return 'mended'")
    assert load("broken.py:f").function() == "mended"


# ── packages ─────────────────────────────────────────────────────────────────────────────────────


def package(name: str = "pkg") -> None:
    write(f"{name}/__init__.py", "LOADED = []\nLOADED.append(__name__)")
    write(f"{name}/helper.py", "BIAS = 1.0")
    write(f"{name}/sub/__init__.py")
    write(
        f"{name}/sub/ops.py",
        """
        from ..helper import BIAS
        from .. import LOADED

        def f(x): return x + BIAS
        def loaded(): return LOADED
        """,
    )


def test_relative_imports_work_in_the_file_form():
    package()
    loaded = load("pkg/sub/ops.py:f")
    assert loaded.function(1) == 2.0
    assert loaded.module.__name__ == "pkg.sub.ops"


@pytest.mark.parametrize(
    "specs", [("pkg/sub/ops.py", "pkg.sub.ops"), ("pkg.sub.ops", "pkg/sub/ops.py")]
)
def test_a_package_is_initialised_once_in_either_form(specs):
    package()
    for spec in specs:
        assert load(f"{spec}:loaded").function() == ["pkg"]


def test_the_folder_above_a_package_goes_to_the_end_of_the_path(folder):
    package("deep/pkg")
    load("deep/pkg/sub/ops.py:f")
    assert sys.path[-1] == str(folder / "deep")


@pytest.mark.parametrize("name", ["random", "kernelcount", "my-package"])
def test_a_package_whose_name_is_taken_keeps_its_relative_imports(name):
    before = sys.modules.get(name)
    package(name)
    loaded = load(f"{name}/sub/ops.py:f")
    assert loaded.function(1) == 2.0
    assert len(load(f"{name}/sub/ops.py:loaded").function()) == 1
    assert sys.modules.get(name) is before


def test_a_package_s_init_and_odd_file_names_are_loaded():
    write("pkg/__init__.py", "def f(): return __name__")
    write("pkg/my.ops.py", "from . import f\ndef g(): return f()")
    assert load("pkg/__init__.py:f").function() == "pkg"
    assert load("pkg/my.ops.py:g").function() == "pkg"


# ── modules by name ──────────────────────────────────────────────────────────────────────────────


def test_the_current_directory_is_on_the_path_for_a_module(folder):
    write("local_ops.py", "def f(x): return x")
    write("scripts/bench.py", "def g(x): return -x")
    assert load("local_ops:f").function(1) == 1
    assert load("scripts.bench:g").function(1) == -1
    assert sys.path[-1] == str(folder)


def test_an_installed_module_is_imported_by_name():
    assert load("torch.nn.functional:relu").function is torch.nn.functional.relu


@pytest.mark.parametrize("name", ["random", "math", "pytest"])
def test_a_local_file_wins_over_the_module_whose_name_it_bears(name):
    before = sys.modules.get(name)
    write(f"{name}.py", "def f(): return 'local'")
    assert load(f"{name}:f").function() == "local"
    assert sys.modules.get(name) is before


def test_a_local_random_does_not_break_torch():
    write("random.py", "import torch\ndef f(x): return torch.nn.functional.dropout(x)")
    script = (
        "import sys; sys.path.pop(0)\n"
        "from kernelcount.target import load\n"
        "import torch\n"
        "print(load('random:f').function(torch.zeros(2)).tolist())\n"
        "import random; print(random.randint(1, 1))"
    )
    path = str(Path(target.__file__).parent.parent.parent)
    result = subprocess.run(
        [
            sys.executable,
            "-W",
            "ignore",
            "-c",
            f"import sys; sys.path.insert(1, {path!r})\n{script}",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.stdout.split("\n") == ["[0.0, 0.0]", "1", ""], result.stderr


def test_a_module_that_is_not_there_is_said_with_where_it_was_looked_for(folder):
    text = refusal("no_such_module.sub:f")
    assert text.startswith(f"there is no module no_such_module: it is neither in {folder}\n")
    assert sys.executable in text


@pytest.mark.parametrize("place", ["my-file", "..ops", "a..b", "file.py:"])
def test_what_cannot_be_a_module_s_name_is_refused(place):
    assert "is not a module's name: write path/to/file.py:f" in refusal(f"{place}:f")


# ── sys.argv ─────────────────────────────────────────────────────────────────────────────────────


def test_the_user_s_argument_parser_does_not_see_our_flags(folder):
    script = """
        import argparse, sys
        parser = argparse.ArgumentParser()
        parser.add_argument("--epochs", type=int, default=3)
        EPOCHS = parser.parse_args().epochs
        ARGV = list(sys.argv)
        def f(): return EPOCHS, ARGV
        """
    write("script.py", script)
    write("script2.py", script)
    assert load("script.py:f").function() == (3, [str(folder / "script.py")])
    assert sys.argv == [str(folder / "script.py")]
    assert load("script2:f").function() == (3, [str(folder / "script2.py")])
    assert sys.argv == [str(folder / "script2.py")]


# ── what goes wrong in an import ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("line", "call"),
    [
        ("sys.exit(0)", "sys.exit(0)"),
        ("sys.exit()", "sys.exit()"),
        ("sys.exit('bye')", "sys.exit('bye')"),
        ("raise SystemExit(3)", "sys.exit(3)"),
    ],
)
def test_a_file_that_exits_while_it_is_imported_is_an_error(line, call):
    write("leaves.py", f"import sys\n{line}")
    text = refusal("leaves.py:f", UserCodeError)
    assert text == f"leaves.py called {call} while it was imported"


def test_an_exception_of_the_import_is_shown_with_the_user_s_frames_alone(folder):
    write("outer.py", "import inner")
    write("inner.py", "def fail():\n    raise ValueError('bad\\nsecond')\nfail()")
    text = refusal("outer.py:f", UserCodeError)
    lines = [line.strip() for line in text.splitlines() if "^" not in line]
    assert lines == [
        "Traceback (most recent call last):",
        f'File "{folder}/outer.py", line 1, in <module>',
        "import inner",
        f'File "{folder}/inner.py", line 3, in <module>',
        "fail()",
        f'File "{folder}/inner.py", line 2, in fail',
        "raise ValueError('bad\\nsecond')",
        "ValueError: bad",
        "second",
    ]


def test_a_syntax_error_is_shown_with_file_line_and_caret(folder):
    write("typo.py", "def f(x):\n    return x +\n")
    lines = refusal("typo.py:f", UserCodeError).splitlines()
    assert lines[0] == f'  File "{folder}/typo.py", line 2'
    assert lines[1] == "    return x +"
    assert set(lines[2].strip()) == {"^"}
    assert lines[3] == "SyntaxError: invalid syntax"


def test_a_package_that_the_file_needs_is_named_in_one_line():
    write("kernel.py", "import no_such_package.language as tl")
    text = refusal("kernel.py:f")
    assert text.startswith("kernel.py imports no_such_package, which is not installed here: ")
    assert len(text.splitlines()) == 1


def test_triton_that_is_not_installed_is_no_mistake_of_the_files():
    write("kernel.py", "raise ModuleNotFoundError(name='triton')\ndef f(x): ...")
    text = refusal("kernel.py:f", NotMeasuredError)
    assert text.startswith("kernel.py imports triton, which is not installed here: ")


def test_the_file_that_imports_what_is_missing_is_the_one_named():
    write("main.py", "import lib")
    write("lib/__init__.py", "from lib import parts\n")
    write("lib/parts.py", "import no_such_package")
    assert refusal("main.py:f").startswith(
        "parts.py imports no_such_package, which is not installed"
    )
    assert refusal("lib.parts:f").startswith(
        "parts.py imports no_such_package, which is not installed"
    )


def test_a_part_that_an_installed_package_lacks_is_not_called_missing_altogether():
    write("kernel.py", "import torch.no_such_part")
    text = refusal("kernel.py:f")
    assert (
        text == "kernel.py imports torch.no_such_part, which the torch installed here does not have"
    )


def test_an_import_error_raised_by_hand_is_the_user_s_own_exception():
    write("kernel.py", "raise ModuleNotFoundError('get it from example.org')")
    text = refusal("kernel.py:f", UserCodeError)
    assert text.endswith("ModuleNotFoundError: get it from example.org")


def test_a_skip_raised_while_the_file_is_imported_does_not_skip_us():
    write("test_ops.py", "import pytest\npytest.importorskip('no_such_package')")
    assert "Skipped" in refusal("test_ops.py:f", UserCodeError).splitlines()[-1]


def test_a_keyboard_interrupt_passes_through():
    write("slow.py", "raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        load("slow.py:f")


# ── specs that lead nowhere ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("spec", ["ops.py", "ops.py:", "ops"])
def test_a_spec_without_a_function_says_how_to_name_one(spec):
    write("ops.py", "import torch\ndef _private(): pass\ndef relu6(x): pass\ndef gelu(x): pass")
    text = refusal(spec)
    assert "does not say which function: write ops" in text
    if spec != "ops":
        assert "write ops.py:relu6 (it has relu6, gelu)" in text


def test_a_spec_without_a_module_is_refused():
    assert refusal(":f") == "':f' names no module: write path/to/file.py:f"


@pytest.mark.parametrize("name", ["f()", "a b", "a..b", "f-1"])
def test_what_is_no_name_is_refused(name):
    write("ops.py", "def f(): pass")
    assert "is not a name: write path/to/file.py:NAME" in refusal(f"ops.py:{name}")


def test_a_file_that_is_not_there_is_said_with_the_nearest(folder):
    write("sub/add_relu.py")
    assert refusal("sub/ad_relu.py:f") == (
        "there is no file sub/ad_relu.py: did you mean sub/add_relu.py?"
    )
    assert refusal("zzz.py:f") == f"there is no file zzz.py (looked in {folder})"


def test_a_folder_and_a_forgotten_suffix_are_explained():
    write("sub/add.py")
    assert refusal("./sub:f") == "./sub is a folder: name a file in it, as ./sub/FILE.py:f"
    assert refusal("sub/add:f") == "there is no file sub/add: write sub/add.py:f"
    assert refusal("sub/none:f") == "sub/none is not a Python file: write path/to/file.py:f"


def test_a_wrong_name_is_answered_with_the_nearest():
    write("ops.py", "def add_relu(x): pass\ndef add_gelu(x): pass\ndef other(x): pass")
    assert refusal("ops.py:add_rleu") == (
        "ops.py has no add_rleu: did you mean add_relu or add_gelu?"
    )
    assert refusal("ops.py:OTHER") == "ops.py has no OTHER: did you mean other?"


def test_a_name_near_nothing_is_answered_with_what_the_file_defines():
    write(
        "ops.py",
        "from torch import relu\nfrom functools import wraps\nN = 3\n"
        "def make_inputs(): pass\ndef _hidden(): pass\n"
        + "\n".join(f"def {n}(x): pass" for n in "abcdef"),
    )
    assert refusal("ops.py:qqqq") == "ops.py has no qqqq. It has a, b, c, d, e, ..."
    write("empty.py", "N = 3")
    assert refusal("empty.py:f") == "empty.py has no f, and nothing else that can be called"


def test_a_wrong_name_behind_a_dot_is_looked_for_where_it_should_be():
    write("ops.py", "class ns:\n    def forward_one(x): pass\n    def forward_two(x): pass")
    assert refusal("ops.py:ns.forward_on").startswith("ops.py:ns has no forward_on: did you mean")


def test_what_cannot_be_called_is_refused():
    write("ops.py", "import torch\nWEIGHT = torch.ones(2)\nasync def later(x): return x")
    assert refusal("ops.py:WEIGHT") == (
        "WEIGHT is a Tensor, which cannot be called: name a function or an nn.Module"
    )
    assert refusal("ops.py:later").startswith("later is async, so calling it runs nothing")


def test_an_attribute_that_raises_when_it_is_looked_up_is_the_user_s_error():
    write("lazy.py", "def __getattr__(name):\n    raise RuntimeError('no ' + name)")
    assert refusal("lazy.py:f", UserCodeError).endswith("RuntimeError: no f")


# ── callables of all kinds ───────────────────────────────────────────────────────────────────────


def test_whatever_can_be_called_is_accepted():
    write(
        "kinds.py",
        """
        import functools, torch

        class Doubler:
            def __call__(self, x): return 2 * x

        class ns:
            def plain(x): return 2 * x
            @staticmethod
            def static(x): return 2 * x
            @classmethod
            def of_class(cls, x): return 2 * x

        def times(k, x): return k * x

        doubler = Doubler()
        bound = doubler.__call__
        twice = functools.partial(times, 2)
        anonymous = lambda x: 2 * x
        stack = torch.nn.Sequential(torch.nn.Identity())
        """,
    )
    names = "doubler bound twice anonymous ns.plain ns.static ns.of_class doubler.__call__"
    for name in names.split():
        assert load(f"kinds.py:{name}").function(3) == 6, name
    assert load("kinds.py:stack").function(3) == 3
    assert load("kinds.py:stack.0").function(3) == 3
    assert isinstance(load("kinds.py:twice").function, functools.partial)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, from its first compile
def test_what_torch_compile_returns_is_accepted():
    write(
        "compiled.py",
        """
        import torch

        @torch.compile
        def decorated(x): return x + 1

        module = torch.compile(torch.nn.Sequential(torch.nn.ReLU()))
        """,
    )
    assert callable(load("compiled.py:decorated").function)
    assert isinstance(load("compiled.py:module").function, torch.nn.Module)


MODEL = """
    import torch

    class Model(torch.nn.Module):
        def __init__(self, width, eps):
            super().__init__()
            self.width, self.eps = width, eps
        def forward(self, x): return x * self.width
        def forward_one(self, x): return x + self.width

    class Default(torch.nn.Module):
        def forward(self, x): return x
    """


def test_a_module_class_is_built_with_the_file_s_init_inputs():
    write("model.py", MODEL)
    with Path("model.py").open("a") as file:
        file.write("def get_init_inputs(): return [32, 1e-6]\n")
    function = load("model.py:Model").function
    assert isinstance(function, torch.nn.Module)
    assert (function.width, function.eps) == (32, 1e-6)
    assert load("model.py:Model").function is not function


@pytest.mark.parametrize(
    "returned", ["(32, 1e-6)", "{'width': 32, 'eps': 1e-6}", "[[32], {'eps': 1e-6}]"]
)
def test_init_inputs_come_as_a_tuple_a_dict_or_both(returned):
    write("model.py", textwrap.dedent(MODEL) + f"\ndef get_init_inputs(): return {returned}")
    function = load("model.py:Model").function
    assert (function.width, function.eps) == (32, 1e-6)


def test_a_list_and_a_dict_are_two_arguments_where_only_that_fits():
    write("model.py", textwrap.dedent(MODEL) + "\ndef get_init_inputs(): return [[8, 8], {'a': 1}]")
    function = load("model.py:Model").function
    assert (function.width, function.eps) == ([8, 8], {"a": 1})


def test_a_module_class_without_init_inputs_is_built_without_arguments():
    write("model.py", MODEL)
    assert load("model.py:Default").function(7) == 7
    assert isinstance(load("torch.nn:ReLU").function, torch.nn.ReLU)


def test_a_method_of_a_module_class_is_bound_to_a_built_module():
    write("model.py", textwrap.dedent(MODEL) + "\ndef get_init_inputs(): return [32, 1e-6]")
    loaded = load("model.py:Model.forward_one")
    assert loaded.name == "Model.forward_one"
    assert loaded.function(1) == 33


def test_a_module_class_that_needs_arguments_says_how_to_give_them():
    write("model.py", MODEL)
    text = refusal("model.py:Model")
    assert text.startswith(
        "Model needs width, eps to be built: define get_init_inputs() in the file"
    )


def test_init_inputs_that_do_not_fit_are_explained():
    write("model.py", textwrap.dedent(MODEL) + "\ndef get_init_inputs(): return [32]")
    text = refusal("model.py:Model")
    assert (
        text
        == "get_init_inputs() does not fit Model(width, eps): missing a required argument: 'eps'"
    )
    write("model2.py", textwrap.dedent(MODEL) + "\ndef get_init_inputs(): return 32")
    assert "get_init_inputs() returned a int: return a list" in refusal("model2.py:Model")


def test_what_a_constructor_raises_is_the_user_s_error(folder):
    write(
        "model.py",
        """
        import sys, torch

        class Fails(torch.nn.Module):
            def __init__(self): raise ValueError("no weights")

        class Leaves(torch.nn.Module):
            def __init__(self): sys.exit(0)
        """,
    )
    text = refusal("model.py:Fails", UserCodeError)
    assert text.startswith(
        f'Traceback (most recent call last):\n  File "{folder}/model.py", line 4'
    )
    assert text.endswith("ValueError: no weights")
    assert refusal("model.py:Leaves", UserCodeError) == (
        "Leaves called sys.exit(0) while it was built"
    )


def test_a_plain_class_and_its_methods_are_refused_in_one_line():
    write("plain.py", "class Plain:\n    def run(self, x): return x")
    for spec in ("plain.py:Plain", "plain.py:Plain.run"):
        text = refusal(spec)
        assert len(text.splitlines()) == 1
        assert "name a function that makes one" in text


# ── tracebacks ───────────────────────────────────────────────────────────────────────────────────


def raised_by(function) -> BaseException:
    try:
        function()
    except Exception as error:
        return error
    raise AssertionError("it did not raise")


def test_a_traceback_leaves_torch_s_frames_out(folder):
    write("deep.py", "import torch\ndef f():\n    torch.nn.Linear(2, 2)(torch.ones(3))")
    text = user_traceback(raised_by(load("deep.py:f").function))
    files = [line.split('"')[1] for line in text.splitlines() if line.startswith("  File")]
    assert files == [__file__, str(folder / "deep.py")]
    assert text.splitlines()[-1].startswith("RuntimeError: mat1 and mat2")


def test_a_traceback_with_nothing_of_the_user_s_shows_torch_s_frames():
    error = raised_by(lambda: torch.nn.Linear(2, 2)(torch.ones(3)))
    # What is left of a call that we made ourselves, of a function that is torch's own.
    error.__traceback__ = error.__traceback__.tb_next.tb_next
    text = user_traceback(error)
    assert "torch/nn/modules/linear.py" in text
    assert text.startswith("Traceback (most recent call last):\n")


def test_a_traceback_of_our_frames_alone_is_the_exception_line():
    namespace: dict = {}
    exec(compile("def f(): raise ValueError('no kernels')", target.__file__, "exec"), namespace)
    error = raised_by(namespace["f"])
    error.__traceback__ = error.__traceback__.tb_next  # without this test's own frame
    assert user_traceback(error) == "ValueError: no kernels"


def test_chained_exceptions_are_filtered_too(folder):
    write(
        "chain.py",
        """
        import torch

        def f():
            try:
                torch.nn.Linear(2, 2)(torch.ones(3))
            except RuntimeError as error:
                raise ValueError("wrapped") from error

        def quiet():
            try:
                torch.nn.Linear(2, 2)(torch.ones(3))
            except RuntimeError:
                raise ValueError("alone") from None
        """,
    )
    text = user_traceback(raised_by(load("chain.py:f").function))
    assert "RuntimeError: mat1 and mat2" in text
    assert "The above exception was the direct cause" in text
    assert text.endswith("ValueError: wrapped")
    assert "torch/nn" not in text
    quiet = user_traceback(raised_by(load("chain.py:quiet").function))
    assert "RuntimeError" not in quiet
    assert quiet.count("Traceback (most recent call last)") == 1


def test_frames_of_the_scenarios_are_the_user_s(monkeypatch, folder):
    monkeypatch.setattr(frames, "_PACKAGE", folder)
    write("_scenarios/demo.py", "def f(): raise ValueError('here')")
    write("ours.py", "def f(): raise ValueError('here')")
    assert "_scenarios/demo.py" in user_traceback(raised_by(load("_scenarios/demo.py:f").function))
    assert "ours.py" not in user_traceback(raised_by(load("ours.py:f").function))
