"""What is asked, and what is shown of it: a job, a report, a diagnosis, a scenario."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kernelcount.model.captures import (
    NOT_MEASURED,
    NOT_TIMED,
    Capture,
    Environment,
    Outcome,
    Target,
    Unmeasured,
    note_codes,
)
from kernelcount.model.conclusions import Beside, Crossover, Fusion, Verdict
from kernelcount.model.figures import Rates, Speed


@dataclass(frozen=True, slots=True)
class Job:
    """What a run is asked to do, as the flags of `kernelcount run` say it.

    `sizes`: one run each; empty: the default of the inputs. `traces`: a file for each variant's raw
    trace, or empty. `timeout` is in seconds, for each variant; `seconds`, those that
    timing may take at each size, 0 for none. `reference`: whether results are held against float64;
    `cold`: whether no cache may hold the arguments of timed calls; `remedy`: whether remedies are
    tried. `gpu`: the card that paper is for. `ncu`: whether Nsight Compute is asked, too.
    `explain`: whether more may be done than a plain run does, to tell why.
    """

    spec: str
    sizes: tuple[int, ...] = ()
    inputs: tuple[str, ...] = ()
    maker: str | None = None
    dtype: str | None = None
    device: str | None = None
    gpu: str | None = None
    variants: tuple[str, ...] = ("eager", "compile")
    seed: int = 0
    backward: bool = False
    no_grad: bool = False
    evaluate: bool = False
    timeout: float | None = None
    seconds: float = 0.0
    reference: bool = False
    cold: bool = False
    remedy: bool = False
    traces: tuple[str, ...] = ()
    ncu: bool = False
    explain: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """The outcomes of one target at one size (`size` None: the trace or file has no such thing).

    `besides`: what paper says of each outcome, in their order, and `speeds`: how the time of each
    compares with that of the first; `verdicts`: what holds each back; empty where that was not
    asked. `fusions`: which eager kernels each compiled variant's replace.
    """

    outcomes: tuple[Outcome, ...]
    size: int | None = None
    besides: tuple[Beside | None, ...] = ()
    speeds: tuple[Speed | None, ...] = ()
    verdicts: tuple[Verdict | None, ...] = ()
    fusions: tuple[Fusion | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """All that a renderer sees: one run, or several where a list of sizes was asked for.

    `crossovers`: from which size on each variant is faster than the first, for several sizes.
    """

    command: Literal["run", "read"]
    environment: Environment
    runs: tuple[Run, ...]
    target: Target | None = None
    crossovers: tuple[Crossover, ...] = ()

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """Every outcome, size by size."""
        return tuple(o for run in self.runs for o in run.outcomes)

    @property
    def exit_code(self) -> int:
        """0, or the code of what could not be measured, be it the time alone.

        For files the highest; in a run 2 outranks 3: where the user's own function raised, that is
        what there is to mend.
        """
        codes = {o.code for o in self.outcomes if isinstance(o, Unmeasured)}
        if self.command == "read":
            return max(codes, default=0)
        captures = [o for o in self.outcomes if isinstance(o, Capture)]
        untimed = any(NOT_TIMED in note_codes(c.notes) for c in captures)
        return min(codes | ({NOT_MEASURED} if untimed else set()), default=0)


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that measuring may need: whether it is there, what was found, and the way out."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What can be measured on this machine, what its GPU reaches, and what came of an atlas.

    `code` is the exit code, and `said` why it is not 0. `recorded` says what was written. `rates`
    None: `unrated` says why; `kept` says where they are kept, or why they are not.
    """

    checks: tuple[Check, ...] = ()
    recorded: str = ""
    code: int = 0
    said: str = ""
    rates: Rates | None = None
    unrated: str = ""
    kept: str = ""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A function and its budget that come with the tool, by their files.

    `claim` is one sentence, which the budget holds; `teaches` is why it is so. `problem`: why the
    file cannot be read, which is then the claim too, or its budgets; "" where they can.
    `replaces`: the function's file of the one of that name that comes with the tool, where this is
    the user's own; else "".
    """

    name: str
    theme: str
    claim: str
    teaches: str
    function: str
    budget: str
    problem: str = ""
    replaces: str = ""
