"""kernelcount: count the GPU kernels that a PyTorch function launches.

    from kernelcount import check, compare, count, read

    count(fn, x).kernels            # a number, or NotMeasuredError with the reason
    print(compare(fn, x))           # eager beside torch.compile, as the CLI shows it
    read("trace.json.gz")[0].kernels
    assert check("budgets/")        # every limit is kept

`import kernelcount` loads nothing: torch comes with the first count.
"""

# Nothing is imported here, typing neither: under `python -m` the current folder comes first, and a
# file of the user's may bear any name.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from kernelcount.api import check as check
    from kernelcount.api import compare as compare
    from kernelcount.api import count as count
    from kernelcount.api import read as read
    from kernelcount.errors import KernelcountError as KernelcountError
    from kernelcount.errors import NotMeasuredError as NotMeasuredError
    from kernelcount.errors import UnreadableError as UnreadableError
    from kernelcount.errors import UsageError as UsageError
    from kernelcount.errors import UserCodeError as UserCodeError
    from kernelcount.model import Checked as Checked
    from kernelcount.model import Environment as Environment
    from kernelcount.model import Held as Held
    from kernelcount.model import Note as Note
    from kernelcount.model import Numerics as Numerics
    from kernelcount.model import Row as Row
    from kernelcount.model import Speed as Speed
    from kernelcount.model import Target as Target
    from kernelcount.model import Verdict as Verdict
    from kernelcount.results import Checking as Checking
    from kernelcount.results import Comparison as Comparison
    from kernelcount.results import Count as Count
    from kernelcount.results import Reading as Reading

__version__ = "0.1.0"

_HOMES = {
    "api": ("check", "compare", "count", "read"),
    "errors": (
        "KernelcountError", "NotMeasuredError", "UnreadableError", "UsageError", "UserCodeError",
    ),
    "model": (
        "Checked", "Environment", "Held", "Note", "Numerics", "Row", "Speed", "Target", "Verdict",
    ),
    "results": ("Checking", "Comparison", "Count", "Reading"),
}  # fmt: skip
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = ["__version__", *sorted(_HOME)]  # noqa: PLE0604  the table above is all there is


if not TYPE_CHECKING:  # or a checker would take every name for one that there is

    def __getattr__(name):  # noqa: ANN001, ANN202
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
