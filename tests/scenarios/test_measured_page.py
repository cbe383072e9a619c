"""The page of measured claims: what is kept, broken, failed or not reached is told apart."""

import importlib
import sys
from pathlib import Path

import pytest

from kernelcount import scenarios


@pytest.fixture
def page(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(Path(__file__).parent.parent / "gpu")])
    return importlib.import_module("measured_page")


def limit(status, actual, why="", name="kernels", unit="", low=2.0, high=2.0, over=""):
    bounds = {"low": low, "high": high, "over": over}
    return {
        "variant": "eager", "limit": name, "status": status, "actual": actual, "why": why,
        "bounds": bounds, "unit": unit,
    }  # fmt: skip


def budget(*limits, **more):
    variant = {
        "name": "eager", "kernels": 2, "launches": 2, "copies": 0, "stable": True,
        "kernel_time_ns": 463_000, "call_ns": 469_000.0, "speed": None, "price": None,
        "result": None, "transfers": 5.0, "verdict": "memory-bound", "syncs": [],
        "longest": {"name": "k", "registers": 32, "occupancy": 0.5},
    }  # fmt: skip
    return {
        "scenario": "add_relu", "target": "add_relu.py:add_relu", "size": 100_000_000,
        "limits": list(limits), "variants": [variant],
        "environment": {"device": "NVIDIA H200", "torch": "2.11.0", "triton": "3.6.0"}, **more,
    }  # fmt: skip


def test_every_claim_has_scenarios_and_every_scenario_a_claim(page):
    claimed = {name for claim in page.CLAIMS for name in claim.scenarios}
    assert len(page.CLAIMS) == 22
    assert claimed == {scenario.name for scenario in scenarios.find()}


def test_a_claim_whose_budgets_are_kept_holds(page):
    text = page.page([budget(limit("kept", 2))], {}, {}, 10.0)
    row = next(line for line in text.splitlines() if line.startswith("| 2 |"))
    assert "Measured on NVIDIA H200 with torch 2.11.0 and Triton 3.6.0" in text
    assert "| add_relu at 1e8: eager kernels 2 | add_relu at 1e8: eager 2 kernels, 469 µs |" in row
    assert "| holds in part: 1 limit kept. At 1e6 the transfers are saved on paper only" in row
    assert (
        "| eager | 2 | 2 | 5.0 | 463 µs | 469 µs | memory-bound; 32 registers, occupancy 50 % |"
        in text
    )
    assert "- kept: eager kernels 2: 2" in text


def test_a_broken_limit_is_a_claim_that_does_not_hold_here(page):
    text = page.page([budget(limit("kept", 2), limit("broken", 3, "split-K"))], {}, {}, 1.0)
    assert "**does not hold here**: 1 of 2 limits broken" in text
    assert "- **broken**: eager kernels 2: 3 (split-K)" in text


def test_what_failed_or_was_not_reached_is_no_claim_that_holds(page):
    failed = {"scenario": "add_relu", "failed": "RuntimeError: no memory"}
    text = page.page([failed], {"sweep": ["not measured: x|y"]}, {"sum_cuda": "error: 1"}, 1.0)
    assert "not decided: RuntimeError: no memory" in text
    assert "not measured: x/y" in text
    assert "- `sum_cuda`: error: 1" in text


def test_what_is_undecided_is_said_beside_what_holds(page):
    limits = limit("kept", 2), limit("undecided", None, "needs a GPU", name="syncs")
    text = page.page([budget(*limits)], {}, {}, 1.0)
    assert "holds in part: 1 limit kept, 1 undecided" in text
    assert "- **undecided**: eager syncs 2: unknown (needs a GPU)" in text


def test_a_speed_names_what_it_is_over(page):
    one = limit("kept", 1.68, name="speedup", unit="x", low=1.5, high=None, over="a.py:f")
    assert page.limit(one) == "speedup ≥ 1.50x over a: f: 1.68x"


def test_one_size_of_a_sweep_says_which_is_faster(page):
    slower = {"verdict": "slower", "ratio": 0.5}
    assert page.swept(100, [20_500.0, 41_200.0], slower) == (
        "1e2: 20.5 µs eager, 41.2 µs compiled, 2.00x slower"
    )
