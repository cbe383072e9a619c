"""What whole functions come to on paper, in eager and compiled."""

from functools import cache
from pathlib import Path

import pytest

from kernelcount import app, runners
from kernelcount.errors import UsageError
from kernelcount.model import Job, Unmeasured, note_codes

FUNCTIONS = Path(__file__).parent / "functions.py"

pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.usefixtures("by_rules_alone", "without_costs"),
]


def count(name, *variants, size=64, **flags):
    """The outcomes by variant."""
    maker = f"make_{name}" if f"def make_{name}(" in FUNCTIONS.read_text() else None
    given = {"device": "paper", "maker": maker, "sizes": (size,), **flags}
    job = Job(f"{FUNCTIONS}:{name}", variants=variants or ("eager", "compile"), **given)
    results = runners.in_process(job, lambda _: None)
    return {o.name: o for o in results.outcomes.values()}


usual = cache(count)
"""The same, counted once for all tests that look at it by rules alone."""


def kernels(outcomes):
    return tuple(o.count("kernel") for o in outcomes.values())


def exact(outcomes):
    return all(not o.paper.at_least for o in outcomes.values())


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("add_relu", (2, 1)),
        ("view_only", (0, 0)),
        ("asks_where_it_is", (2, 1)),
        ("from_the_host", (1, 1)),
        ("breaks", (2, 2)),
        ("drops", (1, 2)),
        ("normalises", (1, 1)),
        ("copies", (0, 1)),
        ("copies_across", (1, 1)),
        ("in_place", (2, 1)),
        ("upsamples", (1, 1)),
        ("compiled_already", (2, 1)),
        ("scales_by_the_host", (1, 1)),
        ("gives_back_to_the_host", (1, 1)),
        ("converts_for_the_host", (1, 1)),
        ("makes_on_the_host", (1, 1)),
        ("by_a_list", (1, 1)),
    ],
)
def test_the_count_is_exact_where_rules_know_every_call(name, expected):
    outcomes = usual(name)
    assert kernels(outcomes) == expected
    assert exact(outcomes)


def test_an_op_stays_whole_under_inference_mode_too():
    assert [r.label for r in count("infers", "eager")["eager"].rows()] == [
        "native_dropout",
        "upsample_nearest2d",
    ]


def test_the_softmax_of_attention_by_math_is_counted_with_what_makes_it_safe():
    """Softmax, isneginf, all, a zero and where, as in traces of an H200; its gradient is one op."""
    forward = count("attends_where_allowed", "eager", no_grad=True)["eager"]
    labels = [row.label for row in forward.rows()]
    assert not forward.paper.at_least or "_safe_softmax" not in str(forward.notes)
    assert {"_softmax", "isneginf", "all", "scalar_tensor", "where"} < set(labels)
    backward = count("attends_where_allowed", "eager", backward=True)["eager"]
    assert "_softmax_backward_data" in [row.label for row in backward.rows()]


def test_generated_kernels_bear_the_names_that_inductor_gives_them():
    compiled = usual("add_relu")["compile"]
    assert [r.name for r in compiled.rows()] == ["triton_poi_fused_add_relu_0"]
    assert (compiled.paper.generated, compiled.paper.library) == (1, 0)


def test_transfers_are_five_in_eager_and_three_when_fused():
    outcomes = usual("add_relu")
    assert [o.paper.transfers for o in outcomes.values()] == [5.0, 3.0]
    assert outcomes["eager"].paper.floor == 3 * 64 * 4


def test_ten_billion_elements_are_counted_and_none_is_made():
    outcomes = count("add_relu", size=10_000_000_000)
    assert kernels(outcomes) == (2, 1)
    assert outcomes["eager"].paper.at_least, "ATen splits what 32 bits cannot address"
    assert outcomes["compile"].paper.bound_ns == round(120e9 / 4.8e12 * 1e9)


def test_small_arrays_have_no_bound_since_the_cache_serves_them():
    assert usual("add_relu")["eager"].paper.bound_ns is None


def test_a_copy_from_the_host_is_a_copy_and_no_kernel():
    outcomes = usual("from_the_host")
    assert [o.count("copy") for o in outcomes.values()] == [1, 1]


def test_a_branch_on_a_value_is_decided_by_real_values_and_said():
    outcomes = count("branches_on_a_value")
    assert kernels(outcomes) == (3, 2)
    assert all("values" in note_codes(o.notes) for o in outcomes.values())


def test_values_beyond_the_limit_are_not_made(monkeypatch):
    monkeypatch.setattr("kernelcount.paper.values.LIMIT", 100)
    outcome = count("branches_on_a_value", "eager")["eager"]
    assert isinstance(outcome, Unmeasured)
    assert (outcome.code, "more than" in outcome.reason) == (3, True)


def test_a_mask_is_a_search_that_the_atlas_knows_for_the_recorded_size(monkeypatch):
    monkeypatch.setattr("kernelcount.paper.atlas.this_torch", lambda: ("2.11.0", None))
    outcome = count("masked", "eager", size=1_000_000)["eager"]
    assert outcome.count("kernel") == 6
    assert any("as recorded on an H200" in n.detail for n in outcome.notes if n.code == "atlas")


@pytest.mark.parametrize(("torch", "gpu"), [("2.13.0", "H200"), ("2.11.0", "H100")])
def test_a_mask_recorded_on_another_card_or_torch_is_a_lower_bound(torch, gpu, monkeypatch):
    monkeypatch.setattr("kernelcount.paper.atlas.this_torch", lambda: (torch, None))
    outcome = count("masked", "eager", size=1_000_000, gpu=gpu)["eager"]
    assert outcome.paper.at_least
    assert "atlas" not in note_codes(outcome.notes)
    assert any("index" in n.detail for n in outcome.notes if n.code == "at-least")


def test_a_mask_of_another_size_is_a_lower_bound_that_names_the_call():
    outcome = usual("masked")["eager"]
    assert outcome.paper.at_least
    assert any("index" in n.detail for n in outcome.notes if n.code == "at-least")


def test_autograd_on_a_gpu_that_is_not_there_ends_no_process():
    outcomes = usual("trains")
    assert kernels(outcomes) == (6, 5)
    assert all(o.paper.at_least for o in outcomes.values())
    assert any("mm ×2" in n.detail for n in outcomes["compile"].notes)


def test_backward_can_be_asked_for():
    forward, both = usual("add_relu"), count("add_relu", "eager", backward=True)
    assert both["eager"].count("kernel") == forward["eager"].count("kernel") + 1


def test_an_optimizer_steps_in_compiled_code():
    from torch._dynamo import config

    with config.patch(recompile_limit=2):  # each new optimizer is another half a second
        outcomes = count("steps")
    assert all(not isinstance(o, Unmeasured) for o in outcomes.values())


def test_a_compiled_optimizer_counts_its_steps_on_the_gpu_in_a_kernel_of_their_own():
    compiled = count("adam_steps", "compile")["compile"]
    assert [r.name for r in compiled.rows()] == ["triton_for_fused_0", "triton_for_fused_1"]


def test_a_fused_optimizer_stays_fused():
    outcomes = count("fused_steps")
    assert all(any("_fused_adamw_" in r.name for r in o.rows()) for o in outcomes.values())


def test_clipping_works_on_the_list_of_gradients_and_not_on_each():
    labels = [r.label for r in count("clips", "eager")["eager"].rows()]
    assert {"_foreach_norm", "_foreach_mul_"} <= set(labels)


def test_what_the_host_changes_between_two_uses_is_not_counted():
    outcome = count("changes_the_hosts_too_late", "compile")["compile"]
    assert isinstance(outcome, Unmeasured)
    assert (outcome.code, "CPU tensor without dimensions" in outcome.reason) == (3, True)
    assert "Backend" not in outcome.reason


def test_a_recurrent_network_is_one_call_of_cudnn_each_way():
    labels = [r.label for r in count("recurs", "eager")["eager"].rows()]
    assert labels.count("_cudnn_rnn") == labels.count("_cudnn_rnn_backward") == 1
    assert "sigmoid" not in labels


def test_of_two_branches_eager_takes_one_and_compiled_code_counts_none():
    outcomes = count("chooses")
    assert kernels(outcomes) == (3, 1)
    assert outcomes["compile"].paper.at_least


def test_a_sparse_tensor_is_refused_by_its_layout():
    outcome = count("is_sparse", "eager")["eager"]
    assert (outcome.code, outcome.reason) == (
        3,
        "tensors with layout sparse_coo are not counted on paper",
    )


def test_a_value_that_is_not_to_be_had_does_not_send_the_code_down_another_path(monkeypatch):
    monkeypatch.setattr("kernelcount.paper.values.LIMIT", 100)
    assert isinstance(count("goes_on_without", "eager")["eager"], Unmeasured)


def test_attention_takes_one_fused_kernel_on_a_hopper():
    outcome = count("attends", "eager")["eager"]
    assert [r.label for r in outcome.rows()] == ["_scaled_dot_product_cudnn_attention"]


def test_attention_takes_flash_on_an_ampere():
    outcome = count("attends", "eager", gpu="A100")["eager"]
    assert [r.label for r in outcome.rows()] == ["_scaled_dot_product_flash_attention"]
    assert outcome.environment.device == "NVIDIA A100"


def test_a_module_is_moved_and_counted():
    outcomes = count("Model")
    assert [r.label for r in outcomes["eager"].rows()] == ["addmm", "relu"]
    assert outcomes["compile"].paper.generated == 1


def test_printing_a_gpu_tensor_leaves_the_count_open():
    outcomes = count("shows")
    assert all(o.paper.at_least for o in outcomes.values())


def test_a_mode_that_adds_kernels_leaves_the_count_open():
    outcome = count("add_relu", "compile:reduce-overhead")["compile:reduce-overhead"]
    assert outcome.paper.at_least
    assert any("CUDA graphs" in n.detail for n in outcome.notes)


def test_the_users_own_error_stays_the_users():
    outcome = count("raises", "eager")["eager"]
    assert isinstance(outcome, Unmeasured)
    assert outcome.code == 2
    assert "mine" in outcome.reason


def test_torch_is_as_it_was_afterwards():
    import torch

    before = (torch.Tensor.to, torch.Tensor.device, torch.tensor, torch.cuda.is_available)
    count("add_relu")
    assert (torch.Tensor.to, torch.Tensor.device, torch.tensor, torch.cuda.is_available) == before
    assert torch.dropout(torch.ones(4, device="meta"), 0.5, True).shape == (4,)


def test_no_cache_hides_a_graph_from_a_second_count():
    assert kernels(usual("add_relu")) == kernels(count("add_relu")) == (2, 1)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"device": "paper", "traces": ("x.json",)}, "no trace"),
        ({"device": "paper", "gpu": "H2000"}, "did you mean H200"),
        ({"device": "cpu", "gpu": "H200"}, "--device paper"),
        ({"gpu": "H2000"}, "did you mean H200"),
        ({"gpu": "H200", "traces": ("x.json",)}, "no trace"),
        ({"device": "paper", "cold": True}, "--cold: nothing runs on paper, so there are no times"),
        ({"device": "paper", "reference": True}, "so there are no results"),
    ],
)
def test_what_paper_cannot_give_is_refused_before_anything_starts(flags, said):
    job = Job(f"{FUNCTIONS}:add_relu", **flags)
    with pytest.raises(UsageError, match=said):
        app.check_job(job)


@pytest.mark.parametrize("name", ["add_relu", "masked", "trains", "drops"])
def test_the_bytes_of_all_kernels_are_those_of_the_variant(name):
    for outcome in usual(name).values():
        moved = [(row.read, row.written) for row in outcome.rows()]
        assert moved
        total = tuple(map(sum, zip(*moved, strict=True)))
        assert total == (outcome.paper.read, outcome.paper.written)


def test_of_a_slice_only_its_own_bytes_are_read_in_a_kernel_of_several_parts_too():
    outcomes = count("last_rows")
    assert outcomes["compile"].paper.read == outcomes["compile"].paper.written == 2 * 8 * 4


def test_a_library_call_moves_as_much_compiled_as_in_eager_also_what_nobody_uses():
    n = 100_000  # more than Inductor sorts by a kernel of its own
    moved = [(o.paper.read, o.paper.written) for o in count("sorts", size=n).values()]
    assert moved == [(n * 4, n * 4 + n * 8)] * 2


def test_an_op_of_ones_own_moves_at_most_what_it_is_given_and_gives():
    for outcome in count("calls_its_own", size=1000).values():
        (own,) = outcome.paper.own
        assert (own.label, own.read, own.written) == ("functions::scaled", 8000, 8000)
        assert own.at_most
        assert outcome.paper.at_most
        assert (outcome.paper.read, outcome.paper.written) == (12_000, 12_000)


def test_an_op_of_ones_own_that_gives_nothing_may_launch_kernels_all_the_same():
    for outcome in count("bumps", size=1000).values():
        (own,) = outcome.paper.own
        assert (own.label, own.read, own.written) == ("functions::bumped", 4000, 4000)
        assert outcome.paper.at_least
        assert "memoised" not in note_codes(outcome.notes)


def test_a_result_is_remembered_only_where_a_first_call_launched_something():
    for outcome in count("views").values():
        assert outcome.count("kernel") == 0
        assert "memoised" not in note_codes(outcome.notes)
    (kept,) = count("remembers", "eager").values()
    assert kept.count("kernel") == 0
    assert "memoised" in note_codes(kept.notes)


def test_of_a_table_only_the_rows_that_are_looked_up_are_read_eager_and_compiled():
    moved = [(o.paper.read, o.paper.written) for o in count("looks_up").values()]
    assert moved == [(64 * 16 * 4 + 64 * 8, 64 * 16 * 4)] * 2


def test_of_an_array_only_the_rows_that_are_put_are_written():
    eager = count("puts", "eager")["eager"]
    rows, indices = 2 * 64 * 4, 2 * 8
    kernels = [row for row in eager.rows() if row.activity == "kernel"]
    by_name = {row.label: (row.read, row.written) for row in kernels}
    assert by_name["index_put_"] == (indices, rows)
    assert by_name["index_add_"] == (indices + 2 * rows, rows)
