"""``kernelcount check``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelcount.cli.options import AllowUndecided, FullLimits, Gpu, Output, PipelineForm, Timeout
from kernelcount.errors import KernelcountError

if TYPE_CHECKING:
    from kernelcount.model import Checked


def check(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PATH",
            help="Budgets, or folders of them. Default: scenarios/ and the current folder.",
            show_default=False,
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option("--device", help="cuda, cuda:1, xpu, cpu, paper; whatever budgets say."),
    ] = None,
    gpu: Gpu = None,
    timeout: Timeout = None,
    seconds: Annotated[
        float,
        typer.Option(
            "--seconds", metavar="S", help="Time calls for so long, where a limit is about it."
        ),
    ] = 1.0,
    update: Annotated[
        bool,
        typer.Option("--update", help="Write what was seen to kernelcount.lock, beside budgets."),
    ] = False,
    allow_undecided: AllowUndecided = False,
    form: PipelineForm = "table",
    output: Output = None,
    full: FullLimits = False,
) -> None:
    """Hold budgets: what targets may launch, move and take."""
    from kernelcount import ahead, app, warm
    from kernelcount.budgets import checking
    from kernelcount.cli import output as out
    from kernelcount.render import check as render

    try:
        out.check_format(form, render.FORMS)
        app.check_files(paths or (), output=output)
        budgets = app.budgets(paths or ())
        line = out.Status()
        shown = _Screen(budgets, line, out.screen(form, output), full=full)
        live = form == "table" and output is None
        options = checking.Options(device, gpu, timeout, seconds, update, allow_undecided)
        try:
            with ahead.Ahead(checking.jobs(budgets, options), warm.in_fork) as runner:
                checked = app.check(
                    budgets,
                    runner,
                    line.say,
                    options,
                    shown.part if live else shown.tell,
                    warm.beside,
                )
        finally:
            line.clear()
    except KernelcountError as error:
        out.fail(error, form, "check")
    for problem in checked.unwritten:
        out.tell(problem)
    if live:
        shown.end(checked)
    text = render.render(checked, form=form, **out.screen(form, output), full=full)
    out.hand_over(text, output, "", checked.exit_code)


class _Screen:
    """Shows budgets as they come."""

    def __init__(self, budgets: Any, line: Any, page: dict[str, Any], *, full: bool) -> None:
        from kernelcount.render import check as render

        limits = [(b.target, limit.variant) for b in budgets for limit in b.all_limits]
        empty = [(b.target, variant) for b in budgets for variant, _ in b.empty]
        self.at = render.screen([*limits, *empty], page["width"], full=full)
        self.colour, self.line = page["colour"], line
        self.begun = self.rows = self.grouped = False
        self.where: Any = None
        self.counts = (len(budgets), sum(len(b.limits) for b in budgets))

    def tell(self, _: Checked, said: tuple[str, ...]) -> None:
        """What is to be told beside one budget."""
        from kernelcount.cli import output as out

        if said:
            self.line.clear()
        for text in said:
            out.tell(text)

    def part(self, checked: Checked, said: tuple[str, ...]) -> None:
        """What came of one budget."""
        from kernelcount.render import check as render

        self.tell(checked, said)
        if not self.begun:
            self._write(render.head(*self.counts, checked.environment, self.at))
        elif checked.environment != self.where and (checked.environment or self.grouped):
            self._write(render.elsewhere(checked.environment, self.at))
            self.grouped = True
        self.where = checked.environment if self.grouped else checked.environment or self.where
        rows = list(render.rows(checked.held, self.at))
        self._write(rows)
        self.begun, self.rows = True, self.rows or bool(rows)

    def end(self, checked: Checked) -> None:
        """The sum. Exits with the code of it all."""
        from kernelcount.render import check as render

        self._write([*([()] if self.rows else []), *render.foot(checked, self.at)])
        raise SystemExit(checked.exit_code)

    def _write(self, lines: Any) -> None:
        from kernelcount.cli import output as out
        from kernelcount.render.layout import paint

        if text := paint(lines, colour=self.colour):
            self.line.clear()
            out.write(text)
