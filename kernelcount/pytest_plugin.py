"""pytest: a fixture that counts, a marker that limits, and failures that show the kernels.

Nothing but the standard library and pytest is imported until a test counts something.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from pathlib import Path

    from kernelcount.holding import Marked
    from kernelcount.model import Report
    from kernelcount.results import Comparison, Count, Reading

_MARK = "kernelcount"
_WRITTEN = "kernelcount-lock"
_YAML = (".yaml", ".yml")
_COMPARE = "kernelcount.compare(fn, ...)"
_HELP = (
    "kernelcount(kernels=1, compile={'transfers': 3}, device='paper', ...): what the counts that"
    " this test makes with the fixture `kernelcount` may be"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """How to count where neither test nor marker says it."""
    group = parser.getgroup("kernelcount", "kernels of PyTorch functions")
    group.addoption(
        "--kernelcount-device", metavar="NAME", help="count on: cuda, cuda:1, xpu, cpu or paper"
    )
    group.addoption("--kernelcount-gpu", metavar="NAME", help="the card that paper is for")
    group.addoption(
        "--kernelcount-allow-undecided",
        action="store_true",
        help="skip a test whose budget cannot be decided here; else it fails",
    )
    group.addoption(
        "--kernelcount-budgets",
        action="store_true",
        help="collect budgets, too: the YAML files that `kernelcount check` reads",
    )
    group.addoption(
        "--kernelcount-update",
        action="store_true",
        help="write what marked tests launch to kernelcount.lock, beside them",
    )


def pytest_configure(config: pytest.Config) -> None:
    """The marker is known."""
    config.addinivalue_line("markers", _HELP)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Files of budgets, where they are asked for."""
    if not parent.config.getoption("kernelcount_budgets") or file_path.suffix not in _YAML:
        return None
    from kernelcount.pytest_budgets import BudgetFile

    return BudgetFile.from_parent(parent, path=file_path)


@pytest.fixture
def kernelcount(request: pytest.FixtureRequest) -> KernelCount:
    """Count what a function launches, by the marker's options, and hold it to its budget.

    ``kernelcount(fn, x).kernels``, ``kernelcount.compare(fn, x)``, ``kernelcount.read(file)``.
    """
    counter = KernelCount(request.node, request.config)
    request.node.stash[_COUNTER] = counter
    return counter


class KernelCount:
    """The functions of the package, for one test: what they count is held to its marker's budget.

    An option is the call's own, or the marker's, or the command line's.
    """

    def __init__(self, node: pytest.Item, config: pytest.Config) -> None:
        self._node, self._config = node, config
        self._marked = _marked(node)
        self._seen: list[str] = []
        self._held = 0
        self._broken = ""  # the first failure, in case the test catches it
        self._skipped = ""

    def __call__(
        self,
        fn: Callable[..., object] | str,
        /,
        *args: object,
        kwargs: Mapping[str, object] | None = None,
        **options: Any,
    ) -> Count:
        """`kernelcount.count`; fails where what it counts breaks the budget."""
        __tracebackhide__ = True
        from kernelcount import api

        options = self._options(options)
        options.pop("variants", None)
        if self._marked is not None and len(self._marked.limited) == 1:
            options.setdefault("variant", self._marked.limited[0])
        count = api.count(fn, *args, kwargs=kwargs, **options)
        self._hold(count.report, [count])
        return count

    def count(
        self,
        fn: Callable[..., object] | str,
        /,
        *args: object,
        kwargs: Mapping[str, object] | None = None,
        **options: Any,
    ) -> Count:
        """The same as calling it."""
        __tracebackhide__ = True
        return self(fn, *args, kwargs=kwargs, **options)

    def compare(
        self,
        fn: Callable[..., object] | str,
        /,
        *args: object,
        kwargs: Mapping[str, object] | None = None,
        **options: Any,
    ) -> Comparison:
        """`kernelcount.compare`, of the budget's variants where no others are named.

        Calls are timed only where the budget, or `seconds`, asks for it.
        """
        __tracebackhide__ = True
        from kernelcount import api

        options = self._options(options)
        if self._marked is not None and self._marked.limits:
            options.setdefault("variants", self._marked.variants)
        compared = api.compare(fn, *args, kwargs=kwargs, **options)
        self._hold(compared.report, compared.counts)
        return compared

    def read(
        self, path: str | os.PathLike[str], /, *more: str | os.PathLike[str], **options: Any
    ) -> Reading:
        """`kernelcount.read`."""
        from kernelcount import api

        return api.read(path, *more, **options)

    def finish(self) -> None:
        """Fail where the budget has a variant that was never counted, or the test caught a failure.

        What was caught stands: no test passes, or skips itself, over a budget that is not kept.
        """
        __tracebackhide__ = True
        self.stand()
        if self._skipped:
            pytest.skip(self._skipped)
        limited = self._marked.limited if self._marked else ()
        left = [variant for variant in limited if variant not in self._seen]
        if left:
            names = ", ".join(left)
            call = f"kernelcount(fn, ..., variant={left[0]!r})" if len(left) == 1 else _COMPARE
            pytest.fail(
                f"kernelcount: no count of {names}, which has a budget: call {call} of the"
                " fixture of that name",
                pytrace=False,
            )

    def stand(self) -> None:
        """Fail with what the test caught, if it caught a failure of the budget."""
        __tracebackhide__ = True
        if self._broken:
            pytest.fail(f"{self._broken}\n(the test caught this failure)", pytrace=False)

    def _options(self, own: dict[str, Any]) -> dict[str, Any]:
        given = dict(own)
        for name, value in self._marked.options if self._marked else ():
            given.setdefault(name, value)
        if "device" not in given and "gpu" not in given:
            for name in ("device", "gpu"):
                if (value := self._config.getoption(f"kernelcount_{name}")) is not None:
                    given[name] = value
        timed = self._marked is not None and self._marked.is_timed
        given.setdefault("seconds", 1.0 if timed else 0.0)
        return given

    def _hold(self, report: Report, counts: Sequence[Count]) -> None:
        """Fail or skip where a limit is not kept, or what is recorded was not launched."""
        __tracebackhide__ = True
        if self._marked is None or not self._marked.limits:
            return
        from kernelcount import holding
        from kernelcount.errors import UsageError

        self._seen += (count.name for count in counts)
        self._held += 1
        target = f"{self._node.path.name}::{self._node.nodeid.partition('::')[2]}"
        target = target if self._held == 1 else f"{target} {self._held}"
        update = bool(self._config.getoption("kernelcount_update"))
        try:
            checked = holding.hold(self._marked, target, report, counts, update=update)
        except UsageError as error:
            self._broken = self._broken or f"kernelcount: {error}"
            _refuse(f"kernelcount: {error}")
        self._node.user_properties += ((_WRITTEN, said) for said in checked.written)
        if not (said := holding.told(checked)):
            return
        shown = [line for count in counts for line in holding.listing(count)]
        text = "\n".join(["kernelcount: the budget is not kept", *said, "", *shown])
        allowed = self._config.getoption("kernelcount_allow_undecided")
        if allowed and not checked.count("broken") and not checked.unwritten:
            self._skipped = self._skipped or text
            pytest.skip(text)
        self._broken = self._broken or text
        pytest.fail(text)


_COUNTER = pytest.StashKey[KernelCount]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """A test that has a budget and counts nothing, or catches its failure, is no pass."""
    try:
        result = yield
    except pytest.skip.Exception:
        if (counter := item.stash.get(_COUNTER, None)) is not None:
            counter.stand()
        raise
    if item.get_closest_marker(_MARK) is not None:
        (item.stash.get(_COUNTER, None) or KernelCount(item, item.config)).finish()
    return result


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say which lock files were written."""
    every = [r for reports in terminalreporter.stats.values() for r in reports]
    calls = [r for r in every if getattr(r, "when", None) == "call"]
    said = [value for call in calls for key, value in call.user_properties if key == _WRITTEN]
    files = {text.partition(": ")[0] for text in said}
    for file in sorted(files):
        news = sum(text.partition(": ")[0] == file and ": 0 of" not in text for text in said)
        terminalreporter.write_line(f"kernelcount: wrote {file}, for {news} counts")


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """Show what a count is of where an assertion about it fails."""
    results = sys.modules.get("kernelcount.results")
    if results is None:
        return None
    known = (results.Whole, results.Ratio, results.Names)
    counted = [x for x in (left, right) if isinstance(x, known)]
    if not counted:
        return None
    from kernelcount import holding

    shown = [line for value in counted for line in holding.listing(value.of)]
    return [f"{left!r} {op} {right!r}", *shown]


def _marked(node: pytest.Item) -> Marked | None:
    """What the markers of a test, its class and its module say; None where there is none."""
    marks = list(node.iter_markers(_MARK))
    if not marks:
        return None
    from kernelcount import holding
    from kernelcount.budgets.nodes import Place
    from kernelcount.errors import UsageError

    if any(mark.args for mark in marks):
        pytest.fail("@pytest.mark.kernelcount takes keywords, such as kernels=1", pytrace=False)
    place = Place(str(node.path), (node.location[1] or 0) + 1)
    try:
        return holding.marked(place, *(mark.kwargs for mark in reversed(marks)))
    except UsageError as error:
        _refuse(f"@pytest.mark.kernelcount: {error}")


def _refuse(text: str) -> NoReturn:
    """Fail with a text that says it all."""
    raise pytest.fail.Exception(text, pytrace=False) from None
