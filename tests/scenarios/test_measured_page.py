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


def kernel(name="k", **more):
    return {
        "name": name, "time_ns": 275_000, "registers": 32, "shared_memory": 0, "occupancy": 0.5,
        **more,
    }  # fmt: skip


def budget(*limits, **more):
    variant = {
        "name": "eager", "kernels": 2, "launches": 2, "copies": 0, "stable": True,
        "kernel_time_ns": 463_000, "call_ns": 469_000.0, "speed": None, "price": None,
        "result": None, "transfers": 5.0, "verdict": "memory-bound", "syncs": [],
        "longest": {"name": "k", "registers": 32, "occupancy": 0.5},
        "floor": 3.0, "bytes": 2_000_000_000, "each": [kernel()],
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
    assert (
        "| add_relu at 1e8: eager kernels 2 | add_relu at 1e8: eager 2 kernels, 469 µs<br>" in row
    )
    assert "| holds in part: 1 limit kept. At 1e6 the transfers are modelled, and saved" in row
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
    text = page.page([failed], {}, {"sum_cuda": "error: 1"}, 1.0)
    assert "not decided: RuntimeError: no memory" in text
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


def row(page, number, found, facts):
    lines = page.page(found, facts, {}, 1.0).splitlines()
    return next(line for line in lines if line.startswith(f"| {number} |"))


def of(scenario, *variants, **more):
    return budget(limit("kept", 2), scenario=scenario, variants=list(variants), **more)


def variant(name="eager", **more):
    return {**budget()["variants"][0], "name": name, **more}


def swept(at_ten_million, at_hundred="slower"):
    verdicts = [(100, at_hundred), (10**7, at_ten_million), (10**8, "faster")]
    return {"sweep": {"lines": ["1e7: x"], "verdicts": verdicts, "from": 2.6e7}}


def test_where_a_sweep_refutes_the_claim_the_page_says_so(page):
    said = row(page, 3, [of("crossover", variant())], swept("slower"))
    assert "holds in part" in said
    assert "At 1e7 a compiled call is slower, so that the claim does not hold there" in said
    assert "Compiled calls win from a size of about 2.6e7 on." in said
    assert "At 100 there is a difference, and it is against the compiled function" in said
    held = row(page, 3, [of("crossover", variant())], swept("faster", "no difference"))
    assert "| holds: 1 limit kept. Compiled calls win" in held
    assert "in part" in row(page, 3, [of("crossover", variant())], {})


@pytest.mark.parametrize(
    ("fact", "said"),
    [
        ({"first": 584, "later": 24}, "| holds: 1 limit kept. The first call launches 584"),
        ({"first": 24, "later": 24}, "| **does not hold here**: 1 limit kept. The first call"),
        ({}, "| holds in part: 1 limit kept. The budget is of later calls"),
    ],
)
def test_the_first_call_must_launch_more_than_a_later_one(page, fact, said):
    facts = {"first call": {"lines": ["x"], **fact}}
    assert said in row(page, 4, [of("first_call", variant("compile"))], facts)


def test_the_mean_of_gradients_is_held_to_all_that_is_claimed(page):
    timed = {"eager": 51.6e6, "gradient_mean_cuda.py:mean_norm": 88_200.0}
    found = [of("gradient_mean", *(variant(n, call_ns=t) for n, t in timed.items()), size=2000)]
    said = row(page, 13, found, {"compiled loop": {"lines": ["x"], "call_ns": 25.8e6}})
    assert "| holds in part: 1 limit kept. The loop takes 51.6 ms, for 20 ms" in said
    assert "Compiled it takes 25.8 ms: 2.00x faster, where the article has it a little" in said
    assert "The kernel's call takes 88.2 µs, for 30 µs" in said
    assert "was not timed" in row(page, 13, found, {"compiled loop": {"lines": ["x"]}})


def test_generated_kernels_are_named_and_results_are_held_against_float64(page):
    compiled = variant("compile", each=[kernel("triton_poi_fused_add_relu_0")])
    numerics = {"error": 6e-8, "base_error": 5e-8}
    facts = {"float64 add_relu": {"lines": [page.precise(numerics)]}}
    said = row(page, 2, [of("add_relu", variant(), compiled, size=None)], facts)
    assert "<br>add_relu: compile generated triton_poi_fused_add_relu_0<br>" in said
    assert "error against float64: 5.0e-08 eager, 6.0e-08 compiled |" in said
    assert page.precise(None) == "against float64: not known"


def test_each_kernel_is_shown_where_the_claim_is_about_kernels(page):
    found = [of("ln_bias_gelu", variant("compile", each=[kernel("triton_per", occupancy=0.0004)]))]
    text = page.page(found, {}, {}, 1.0)
    assert "| compile | `triton_per` | 275 µs | 32 | 0 B | under 1 % |" in text
    assert "Modelled bytes over kernel time: compile 4.32 TB/s." in text
    assert "Stalls are not measured here: they need Nsight Compute" in row(page, 19, found, {})
    assert "`triton_per`" not in page.page([of("add", variant())], {}, {}, 1.0)


def test_the_order_of_work_ends_where_nothing_is_left_to_win(page):
    done = variant("compile", transfers=3.0)
    said = row(page, 22, [of("order_of_work", variant(), done)], {})
    assert "makes 3.0 transfers, 3.0 being the least possible: only fewer bytes would" in said
    more = row(page, 22, [of("order_of_work", variant(), {**done, "transfers": 5.0})], {})
    assert "there is something left to win" in more


def test_a_ratio_is_said_to_be_of_calls_in_turn(page):
    assert "median of the ratios of calls taken in turn" in page.page([], {}, {}, 1.0)
