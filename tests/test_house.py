"""The house: who may import whom, what is loaded when, and that the tables name all the files."""

import ast
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "kernelcount"

# From the bottom to the top; imports go down only, and rooms of one layer do not meet.
LAYERS = (
    {"boot", "errors", "model"},
    {"origins"},
    {"conclusions", "scenarios"},
    {"traces", "devices", "render", "target", "inputs", "variants", "memory", "nesting"},
    {"contents", "rules", "settings", "waiting"},
    {"timeline", "operations", "paper", "probes", "state"},
    {"budgets", "inhand", "reading"},
    {"capture", "differences", "examination"},
    {"together"},
    {"remedies"},
    {"worker"},
    {"runners", "preload"},
    {"beside", "ncu", "ahead"},
    {"warm"},
    {"app"},
    {"results", "keywords"},
    {"api", "holding"},
    {"cli", "pytest_budgets"},
    {"__main__", "pytest_plugin"},
)
TORCH = {
    "capture", "contents", "devices", "examination", "inhand", "inputs", "nesting", "paper",
    "preload", "probes", "remedies", "settings", "state", "target", "together", "variants",
    "worker",
}  # fmt: skip
RICH = {"render"}
HEAVY = ("torch", "rich", "yaml", "msgspec", "typer", "matplotlib", "plotille")


def _room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def _layer(room: str) -> int:
    return next(i for i, rooms in enumerate(LAYERS) if room in rooms)


def _files() -> list[Path]:
    return [p for p in sorted(PACKAGE.rglob("*.py")) if p != PACKAGE / "__init__.py"]


def _named(nodes: Iterable[ast.AST]) -> frozenset[str]:
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(names)


@cache
def _read(path: Path) -> tuple[frozenset[str], frozenset[str]]:
    """What a file imports anywhere, and as it is loaded: read once for all that is asked."""
    tree = ast.parse(path.read_text())
    return _named(ast.walk(tree)), _named(tree.body)


def _imports(path: Path) -> frozenset[str]:
    return _read(path)[0]


def test_every_room_has_its_layer():
    rooms = {_room(p) for p in _files()}
    assert rooms == set().union(*LAYERS)


def test_imports_go_down_only():
    for path in _files():
        room = _room(path)
        for name in _imports(path):
            parts = name.split(".")
            if parts[0] != "kernelcount" or len(parts) == 1 or parts[1] in ("__version__", room):
                continue
            assert _layer(parts[1]) < _layer(room), f"{path} imports {name}"


def test_torch_and_rich_stay_in_the_rooms_that_need_them():
    for path in _files():
        names = {name.split(".")[0] for name in _imports(path)}
        assert "torch" not in names or _room(path) in TORCH, path
        assert not names & {"rich", "matplotlib", "plotille"} or _room(path) in RICH, path


def test_torch_rich_and_yaml_are_loaded_where_they_are_used():
    heavy = {"torch", "rich", "yaml", "matplotlib", "plotille"}
    for path in _files():
        assert not {n.split(".")[0] for n in _read(path)[1]} & heavy, path


def test_the_nouns_need_the_standard_library_alone():
    for path in (PACKAGE / "model").glob("*.py"):
        ours = {n for n in _imports(path) if n.partition(".")[0] == "kernelcount"}
        others = {n.partition(".")[0] for n in _imports(path) - ours}
        assert others <= sys.stdlib_module_names, path
        assert all(n.startswith("kernelcount.model") for n in ours), path


def test_every_noun_is_had_from_the_model_itself():
    elsewhere = [path for path in _files() if _room(path) != "model"]
    named = {n for path in elsewhere for n in _imports(path) if n.startswith("kernelcount.model.")}
    assert named
    assert not [name for name in named if name.count(".") > 2]


def test_no_module_bears_the_name_of_a_public_function():
    assert not {"count", "compare", "read", "check"} & {_room(p) for p in _files()}


def test_private_names_of_torch_stand_in_adapters_only():
    adapters = {
        "devices/aten.py", "devices/inductor.py", "paper/accesses.py", "paper/adapter.py",
        "paper/origins.py", "probes/already.py", "probes/breaks.py", "probes/compiler.py",
        "probes/configs.py", "probes/products.py", "probes/widened.py",
    }  # fmt: skip
    for path in _files():
        private = {
            n for n in _imports(path) if n.startswith("torch.") and any(
                part.startswith("_") for part in n.split(".")[1:]
            )
        }  # fmt: skip
        assert not private or str(path.relative_to(PACKAGE)) in adapters, (path, private)


def _loaded(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in done.stdout.split()} & set(HEAVY)


def test_importing_the_package_loads_nothing_heavy():
    assert _loaded("import kernelcount") == set()


def test_the_package_itself_imports_nothing_that_a_file_of_the_users_could_shadow():
    body = ast.parse((PACKAGE / "__init__.py").read_text()).body
    assert not [n for n in body if isinstance(n, ast.Import | ast.ImportFrom)]


def test_the_command_line_loads_typer_alone():
    assert _loaded("import kernelcount.cli") == {"typer"}


def test_reading_a_trace_never_loads_torch():
    assert _loaded("import kernelcount.reading") == {"msgspec"}


def test_looking_at_a_machine_never_loads_torch_in_the_callers_process():
    assert _loaded("import kernelcount.examination.child") == set()
