"""Hold counts on paper against a GPU, with the same torch, and write the table for docs/.

    python tests/gpu/paper_against_measured.py FILE.py [FILE.py ...] --output docs/paper.md

Each public function of each file is counted twice by `kernelcount run`, with ``--device paper`` and
with ``--device cuda``; ``make_NAME`` makes its arguments where the file has it.
"""

from __future__ import annotations

import argparse
import ast
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

Counts = dict[str, dict[str, Any]]


def functions(file: Path) -> list[str]:
    """The functions of a file that are to be counted."""
    names = [n.name for n in ast.parse(file.read_text()).body if isinstance(n, ast.FunctionDef)]
    return [n for n in names if not n.startswith(("_", "make_"))]


def count(file: Path, name: str, device: str) -> Counts:
    """The document of `kernelcount run`."""
    command = [sys.executable, "-m", "kernelcount", "run", f"{file}:{name}", "--device", device]
    if f"def make_{name}(" in file.read_text():
        command += ["--inputs", f"make_{name}"]
    done = subprocess.run(
        [*command, "--format", "json"], capture_output=True, text=True, check=False
    )
    return json.loads(done.stdout)


def verdict(paper: dict[str, Any], measured: dict[str, Any]) -> str:
    """exact, at least, below, above or unknown; `below` is a lower bound that was not marked."""
    said, truth = paper.get("kernels"), measured.get("kernels")
    if said is None or truth is None:
        return "unknown"
    if said == truth:
        return "exact"
    if said > truth:
        return "above"
    return "at least" if paper.get("at_least") else "below"


def generated(measured: dict[str, Any]) -> int:
    """How many of the measured kernels Inductor generated."""
    rows = measured.get("rows", [])
    return sum(r["count"] for r in rows if r["name"].startswith("triton_"))


def row(name: str, variant: str, paper: dict[str, Any], measured: dict[str, Any]) -> list[str]:
    """One line of the table."""
    notes = [n["detail"] for n in paper.get("notes", []) if n["code"] == "at-least"]
    cells = [paper.get("kernels"), measured.get("kernels")]
    parts = [paper.get("generated"), generated(measured)] if variant != "eager" else ["", ""]
    said = verdict(paper, measured)
    why = "" if said == "exact" else "; ".join(notes) or str(paper.get("reason") or "")
    return [name, variant, *map(str, cells), *map(str, parts), said, why]


def main() -> None:
    """Count everything and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--output", type=Path, default=Path("docs/paper.md"))
    options = parser.parse_args()
    tally: Counter[str] = Counter()
    lines: list[str] = []
    for file in options.files:
        for name in functions(file):
            paper, measured = count(file, name, "paper"), count(file, name, "cuda")
            for variant in ("eager", "compile"):
                cells = row(name, variant, paper.get(variant, {}), measured.get(variant, {}))
                tally[cells[-2]] += 1
                lines.append(f"| {' | '.join(cells)} |")
                sys.stderr.write(f"{lines[-1]}\n")
    head = ["function", "variant", "paper", "measured", "generated on paper", "generated",
            "verdict", "why"]  # fmt: skip
    said = ", ".join(f"{n} {what}" for what, n in tally.most_common())
    table = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}", *lines]
    text = f"# Counts on paper, held against a GPU\n\n{said}.\n\n" + "\n".join(table) + "\n"
    options.output.write_text(text)


if __name__ == "__main__":
    main()
