"""pytest: a fixture that counts, a marker that limits, and failures that show the kernels.

Nothing but the standard library and pytest is imported until a test counts something.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from kernelcount.holding import Budget
    from kernelcount.results import Comparison, Count, Reading

_MARK = "kernelcount"
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


def pytest_configure(config: pytest.Config) -> None:
    """The marker is known."""
    config.addinivalue_line("markers", _HELP)


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
        self._budget = _budget_of(node)
        self._seen: set[str] = set()

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
        if self._budget is not None and len(self._budget.limits) == 1:
            options.setdefault("variant", next(iter(self._budget.limits)))
        count = api.count(fn, *args, kwargs=kwargs, **options)
        self._hold([count])
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
        if self._budget is not None:
            options.setdefault("variants", self._budget.variants)
        compared = api.compare(fn, *args, kwargs=kwargs, **options)
        self._hold(compared.counts)
        return compared

    def read(
        self, path: str | os.PathLike[str], /, *more: str | os.PathLike[str], **options: Any
    ) -> Reading:
        """`kernelcount.read`."""
        from kernelcount import api

        return api.read(path, *more, **options)

    def finish(self) -> None:
        """Fail where the budget has a variant that was never counted."""
        __tracebackhide__ = True
        left = [v for v in self._budget.limits if v not in self._seen] if self._budget else []
        if left:
            names = ", ".join(left)
            call = f"kernelcount(fn, ..., variant={left[0]!r})" if len(left) == 1 else _COMPARE
            pytest.fail(
                f"kernelcount: no count of {names}, which has a budget: call {call} of the"
                " fixture of that name",
                pytrace=False,
            )

    def _options(self, own: dict[str, Any]) -> dict[str, Any]:
        given = dict(own)
        marked = self._budget.options if self._budget is not None else {}
        for name, value in marked.items():
            given.setdefault(name, value)
        if "device" not in given and "gpu" not in given:
            for name in ("device", "gpu"):
                if (value := self._config.getoption(f"kernelcount_{name}")) is not None:
                    given[name] = value
        timed = self._budget is not None and self._budget.is_timed
        given.setdefault("seconds", 1.0 if timed else 0.0)
        return given

    def _hold(self, counts: Sequence[Count]) -> None:
        """Fail or skip where a limit is not kept."""
        __tracebackhide__ = True
        if self._budget is None:
            return
        from kernelcount import holding

        self._seen |= {c.name for c in counts}
        file, line, _ = self._node.location
        found = holding.held(self._budget, counts, file, (line or 0) + 1)
        said = holding.sentences(found)
        if not said:
            return
        shown = [line for count in counts for line in holding.listing(count)]
        text = "\n".join(["kernelcount: the budget is not kept", *said, "", *shown])
        allowed = self._config.getoption("kernelcount_allow_undecided")
        if allowed and all(h.status != "broken" for h in found):
            pytest.skip(text)
        pytest.fail(text)


_COUNTER = pytest.StashKey[KernelCount]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """A test that has a budget and counts nothing is no pass."""
    result = yield
    if item.get_closest_marker(_MARK) is not None:
        (item.stash.get(_COUNTER, None) or KernelCount(item, item.config)).finish()
    return result


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """Show what a count is of where an assertion about it fails."""
    results = sys.modules.get("kernelcount.results")
    if results is None:
        return None
    counted = [x for x in (left, right) if isinstance(x, results.Whole | results.Ratio)]
    if not counted:
        return None
    from kernelcount import holding

    shown = [line for value in counted for line in holding.listing(value.of)]
    return [f"{left!r} {op} {right!r}", *shown]


def _budget_of(node: pytest.Item) -> Budget | None:
    """What the markers of a test, its class and its module say; None where there is none."""
    marks = list(node.iter_markers(_MARK))
    if not marks:
        return None
    from kernelcount import holding
    from kernelcount.errors import UsageError

    if any(mark.args for mark in marks):
        pytest.fail("@pytest.mark.kernelcount takes keywords, such as kernels=1", pytrace=False)
    try:
        return holding.budget(*(mark.kwargs for mark in reversed(marks)))
    except UsageError as error:
        pytest.fail(f"@pytest.mark.kernelcount: {error}", pytrace=False)
