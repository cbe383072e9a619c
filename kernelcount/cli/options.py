"""Options that several commands have, each declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Gpu = Annotated[
    str | None, typer.Option("--gpu", metavar="NAME", help="The card that paper is for: H200.")
]
Timeout = Annotated[
    float | None, typer.Option("--timeout", metavar="S", help="Seconds for each variant.")
]
Output = Annotated[
    Path | None, typer.Option("--output", metavar="FILE", help="Write the result here.")
]
AllowUndecided = Annotated[
    bool, typer.Option("--allow-undecided", help="Exit 0 where a limit could not be decided.")
]
Device = Annotated[
    str | None, typer.Option("--device", help="cuda, cuda:1, xpu, cpu; paper needs no GPU.")
]
Save = Annotated[
    Path | None, typer.Option("--save", metavar="FILE", help="Write all captures as JSON.")
]
FullCount = Annotated[
    bool,
    typer.Option("--full", help="All kernels, by their full names; all waits and idle times."),
]
FullLimits = Annotated[bool, typer.Option("--full", help="Show limits that are kept, too.")]
CountForm = Annotated[str, typer.Option("--format", help="table, json, markdown or csv.")]
PipelineForm = Annotated[
    str, typer.Option("--format", help="table, json, markdown, csv, github or junit.")
]
ShortForm = Annotated[str, typer.Option("--format", help="table or json.")]
