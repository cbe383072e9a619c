"""Hold counts on paper against a GPU, in one run of each function, and write the table for docs/.

    python tests/gpu/paper_against_measured.py FILE.py [FILE.py ...] --output docs/paper.md

Each public function or module class of each file is counted by `kernelcount run`, which puts the
count on paper beside the measured one; ``make_NAME`` makes its arguments where the file has it.
"""

from __future__ import annotations

import argparse
import ast
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HEAD = ("function", "variant", "measured", "on paper", "verdict", "generated", "difference")


@dataclass(frozen=True)
class Row:
    """One variant: kernels measured and on paper, and how many of each Inductor generated."""

    name: str
    variant: str
    measured: int | None
    paper: int | None
    at_least: bool
    generated: tuple[int, int] | None
    why: str

    @property
    def verdict(self) -> str:
        """exact, at least, below, above or unknown; `below` is a lower bound not marked as one."""
        if self.measured is None or self.paper is None:
            return "unknown"
        if self.paper == self.measured:
            return "exact"
        if self.paper > self.measured:
            return "above"
        return "at least" if self.at_least else "below"

    def line(self) -> str:
        """The row as Markdown."""
        paper = f"{'≥ ' if self.at_least else ''}{self.paper}"
        parts = self.generated
        shown = "" if parts is None else str(parts[1])
        if parts is not None and parts[0] != parts[1]:
            shown += f", on paper {parts[0]}"
        cells = (self.name, self.variant, self.measured, paper, self.verdict, shown, self.why)
        return f"| {' | '.join(str(c).replace('|', '/') for c in cells)} |"


def functions(file: Path) -> list[str]:
    """The functions and classes of a file that are to be counted."""
    nodes = ast.parse(file.read_text()).body
    names = [n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.ClassDef)]
    return [n for n in names if not n.startswith(("_", "make_"))]


def count(file: Path, name: str) -> dict[str, Any]:
    """The document of `kernelcount run`."""
    asked = ["--device", "cuda", "--seconds", "0"]
    command = [sys.executable, "-m", "kernelcount", "run", f"{file}:{name}", *asked]
    if f"def make_{name}(" in file.read_text():
        command += ["--inputs", f"make_{name}"]
    done = subprocess.run(
        [*command, "--format", "json"], capture_output=True, text=True, check=False
    )
    sys.stderr.write(f"{name}: exit {done.returncode}\n")
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def rows(name: str, document: dict[str, Any]) -> list[Row]:
    """A row for each variant of a document."""
    return [_row(name, variant) for variant in document.get("variants", [])]


def _row(name: str, variant: dict[str, Any]) -> Row:
    paper = variant.get("paper") or {}
    generated = None
    if variant["name"] != "eager" and paper.get("generated") is not None:
        seen = sum(r["count"] for r in variant["rows"] if r["name"].startswith("triton_"))
        generated = (paper["generated"], seen)
    why = [d["detail"] for d in paper.get("differences", ())]
    why += [r for r in (paper.get("reason"), variant.get("reason")) if r]
    return Row(
        name,
        variant["name"],
        variant.get("kernels"),
        paper.get("kernels"),
        bool(paper.get("at_least")),
        generated,
        "; ".join(why),
    )


def report(every: Sequence[Row], environment: dict[str, Any], files: str) -> str:
    """The page, as Markdown. `files`: those that were given."""
    tally = Counter(row.verdict for row in every)
    compiled = [row for row in every if row.variant != "eager"]
    same = sum(1 for row in compiled if row.generated and row.generated[0] == row.generated[1])
    exact = tally["exact"]
    text = f"""\
# Counts on paper, held against a GPU

Measured on an {environment["device"]} with torch {environment["torch"]}, and counted on paper for
it in the same run, by `python tests/gpu/paper_against_measured.py {files}`.

- What Inductor generates is right on {same} of {len(compiled)} compiled variants.
- The total is exact on {exact} of all {len(every)} variants ({exact / len(every):.0%}).
- It is above the measured one on {tally["above"]}, below it and not marked `at least` on \
{tally["below"]}, and unknown on {tally["unknown"]}.

Library calls are known by rules and by an atlas that was recorded on the same card. A matrix
product with a side that is no multiple of its dtype's alignment Inductor may pad: on a GPU it times
both ways, so that the measured count may change from run to run.
"""
    head = [f"| {' | '.join(HEAD)} |", f"|{' --- |' * len(HEAD)}"]
    return "\n".join([text, *head, *(row.line() for row in every), ""])


def main() -> None:
    """Count everything and write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--output", type=Path, default=Path("docs/paper.md"))
    parser.add_argument("--jobs", type=int, default=1, help="functions counted at a time")
    options = parser.parse_args()
    names = [(file, name) for file in options.files for name in functions(file)]
    with ThreadPoolExecutor(options.jobs) as pool:
        documents = list(pool.map(lambda job: count(*job), names))
    every = [
        row
        for (_, name), document in zip(names, documents, strict=True)
        for row in rows(name, document)
    ]
    options.output.write_text(
        report(every, documents[0]["environment"], " ".join(map(str, options.files)))
    )


if __name__ == "__main__":
    main()
