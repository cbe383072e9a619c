"""Budgets in YAML as tests: one a file, collected where ``--kernelcount-budgets`` asks for them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from kernelcount import api, holding
from kernelcount.budgets import checking
from kernelcount.budgets import files as budgets
from kernelcount.errors import KernelcountError, NotMeasuredError, UsageError

_UNDECIDED = NotMeasuredError.code


class BudgetFile(pytest.File):
    """A file of budgets; one of another program's holds none."""

    def collect(self) -> Iterable[pytest.Item]:
        """The budgets of the file, as one test: a lock file is for all of them."""
        try:
            found = budgets.read(self.path, named=False)
        except UsageError as error:
            raise self.CollectError(str(error)) from None
        if found:
            yield BudgetItem.from_parent(self, name="budgets", held=tuple(found))


class BudgetItem(pytest.Item):
    """The budgets of a file: each target runs in a process of its own."""

    def __init__(self, *, held: tuple[Any, ...], **more: Any) -> None:
        super().__init__(**more)
        self._budgets = held

    def runtest(self) -> None:
        """Fails where a limit is not kept; skips what may be undecided, which nothing failed is."""
        option = self.config.getoption
        allowed = bool(option("kernelcount_allow_undecided"))
        options = checking.Options(
            option("kernelcount_device"),
            option("kernelcount_gpu"),
            update=bool(option("kernelcount_update")),
        )
        try:
            found = api.held(self._budgets, options)
        except KernelcountError as error:
            raise pytest.fail.Exception(f"kernelcount: {error}", pytrace=False) from None
        self.user_properties += ((holding.WRITTEN, text) for text in found.checked.written)
        if lines := holding.told(found.checked):
            text = "\n".join(["kernelcount: the budget is not kept", *lines, *found.said])
            if allowed and found.exit_code == _UNDECIDED and not found.checked.failed:
                pytest.skip(text)
            pytest.fail(text, pytrace=False)

    def reportinfo(self) -> tuple[Any, int | None, str]:
        """Where it stands."""
        return self.path, 0, f"{self.path.name}: budgets"
