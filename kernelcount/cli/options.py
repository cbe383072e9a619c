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
