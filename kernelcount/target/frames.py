"""Which frames are the user's, and what the user's code raises as an error of ours."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from kernelcount.errors import UserCodeError

_PACKAGE = Path(__file__).resolve().parent.parent


def user_traceback(error: BaseException) -> str:
    """Return the traceback of `error` with the user's frames alone, without a final newline.

    Frames of kernelcount, of importlib and of torch are left out, in chained exceptions too. Where
    nothing of the user's would stay, torch's frames are shown. The last line is always the
    exception; a SyntaxError shows its file, line and caret.
    """
    whole = traceback.TracebackException.from_exception(error)
    chain = _chain(whole)
    in_torch = is_in_torch()
    of_user = any(is_foreign(f) and not in_torch(f) for e in chain for f in e.stack)
    for link in chain:
        kept = [f for f in link.stack if is_foreign(f) and not (of_user and in_torch(f))]
        link.stack = traceback.StackSummary.from_list(kept)
        if not kept:
            # The formatter writes a heading above an empty stack, but not where there is none.
            link.stack = None  # type: ignore[assignment]
    return "".join(whole.format()).rstrip("\n")


def _chain(error: traceback.TracebackException) -> list[traceback.TracebackException]:
    """`error` and all that is shown with it: what it was raised from, or holds as a group."""
    links: list[traceback.TracebackException] = []
    waiting = [error]
    while waiting:
        link = waiting.pop()
        links.append(link)
        context = None if link.__suppress_context__ else link.__context__
        inner = [link.__cause__, context, *(getattr(link, "exceptions", None) or ())]
        waiting += [e for e in inner if e is not None]
    return links


def is_foreign(frame: traceback.FrameSummary) -> bool:
    """Whether a frame is neither ours nor the import machinery's."""
    if frame.filename.startswith("<frozen importlib"):
        return False
    path = Path(frame.filename)
    # The scenarios are installed inside the package, yet they stand for the user's code.
    ours = path.is_relative_to(_PACKAGE) and not path.is_relative_to(_PACKAGE / "_scenarios")
    return not ours and not path.is_relative_to(Path(importlib.__file__).parent)


def is_in_torch() -> Callable[[traceback.FrameSummary], bool]:
    """What tells whether a frame is torch's; none is where torch is not imported."""
    torch = sys.modules.get("torch")
    home = getattr(torch, "__file__", None)
    if home is None:
        return lambda _: False
    folder = Path(home).parent
    return lambda frame: Path(frame.filename).is_relative_to(folder)


@contextmanager
def user_code(what: str, doing: str) -> Iterator[None]:
    """Turn what the user's code raises into a UserCodeError. `doing` follows "sys.exit()"."""
    try:
        yield
    except KeyboardInterrupt:
        raise
    except SystemExit as error:
        code = "" if error.code is None else repr(error.code)
        raise UserCodeError(f"{what} called sys.exit({code}) {doing}") from error
    except BaseException as error:  # pytest's skip and the like are no Exception
        raise UserCodeError(user_traceback(error)) from error
