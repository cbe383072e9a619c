"""The field cases that `run` meets, on the CPU: what happened to somebody must not happen here.

What takes a process (stdout, signals, crashes) stands in cli/test_processes.py and in runners/.
"""

import pytest
from cases.FC52_return_kinds import EXPECT
from counting import CASES, codes, operations

from kernelcount.errors import KernelcountError
from kernelcount.model import Capture, Unmeasured
from kernelcount.nesting import tensors

QUICK = "compile:backend=eager"
"""Compiled as far as Dynamo goes, without a second of C++ for each graph."""


@pytest.fixture
def case(count):
    """Run a field case."""

    def counted(name, *variants, **options):
        file, _, function = name.partition(":")
        number, _, path = file.partition("/")
        (found,) = CASES.glob(f"{number}_*")
        return count(f"{found / path if path else found}:{function}", *variants, **options)

    return counted


# ── FC04, FC11, FC12: what belongs to the call ───────────────────────────────────────────────────


def test_fc04_a_dispatch_mode_doubles_nothing_and_compiles_nothing(case):
    plain = case("FC04:plain")["eager"]
    watched = case("FC04:watched", "eager", QUICK)
    assert operations(plain) == operations(watched["eager"]) == {"add": 1, "relu": 1}
    assert operations(watched[QUICK]) == {"add": 1, "relu": 1}
    assert codes(watched[QUICK]) == ["not-compiled"]


def test_fc11_the_backward_pass_is_counted_with_the_gradient_that_adds_up(case):
    outcome = case("FC11:train_step")["eager"]
    assert operations(outcome) == {"mul": 2, "sum": 1, "ones_like": 1, "add_": 1}


def test_fc12_what_the_maker_did_is_not_in_the_call(case):
    assert operations(case("FC12:target", sizes=(64,))["eager"]) == {"add": 1}


# ── FC40, FC42: recompiling ──────────────────────────────────────────────────────────────────────


def test_fc40_a_constant_float_recompiles_nothing(case):
    outcome = case("FC40:scaled", QUICK)[QUICK]
    assert outcome.stable is True
    assert codes(outcome) == []


@pytest.mark.parametrize("name", ["FC40:drifting", "FC40:varying_length", "FC42:rotating"])
def test_fc42_a_function_given_up_on_is_eager_code_and_says_where(case, name):
    outcome = case(name, QUICK)[QUICK]
    assert codes(outcome) == ["recompile-limit"]
    function = name.partition(":")[2]
    assert f"recompile_limit (8) at '{function}'" in outcome.notes[0].detail
    assert "ran as eager code" in outcome.notes[0].detail


# ── FC43 to FC46: graph breaks, nothing compiled, compiled already ───────────────────────────────


def test_fc43_a_print_between_two_operations_leaves_two_of_them(case):
    outcomes = case("FC43:noisy", "eager", QUICK)
    assert operations(outcomes["eager"]) == operations(outcomes[QUICK]) == {"add": 1, "mul": 1}
    assert codes(outcomes[QUICK]) == []


def test_fc44_reading_a_number_back_is_no_operation(case):
    names = {"abs": 1, "max": 1, "div": 1, "relu": 1, "sub": 1}
    assert operations(case("FC44:normalise")["eager"]) == names


@pytest.mark.parametrize(
    ("name", "expected", "notes"),
    [
        ("opted_out", {"add": 1, "relu": 1}, []),
        ("only_calls_disabled", {"add": 1, "relu": 1}, ["not-compiled"]),
        ("lazy_chunks", {"add": 2, "relu": 2}, ["not-compiled"]),
    ],
)
def test_fc45_what_was_never_compiled_says_so(case, name, expected, notes):
    outcomes = case(f"FC45:{name}", "eager", QUICK)
    assert operations(outcomes["eager"]) == operations(outcomes[QUICK]) == expected
    assert codes(outcomes[QUICK]) == notes


@pytest.mark.parametrize(
    ("name", "eager", "inputs"),
    [
        ("decorated", {"add": 1, "relu": 1, "mul": 1}, ()),
        ("outer", {"add": 1, "relu": 1, "mul": 1}, ()),
        ("linear", {"relu": 1, "tanh": 1}, ("f32[N]",)),
    ],
)
def test_fc46_eager_is_eager_although_the_function_is_compiled_already(case, name, eager, inputs):
    outcome = case(f"FC46:{name}", inputs=inputs, sizes=(64,))["eager"]
    assert operations(outcome) == eager
    assert codes(outcome) == ["compiled-already"]


# ── FC47, FC48, FC55: state ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["drop", "noisy_add"])
def test_fc47_the_users_random_numbers_are_not_disturbed(case, name):
    import torch

    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    assert case(f"FC47:{name}", "eager", QUICK)["eager"].stable is True
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize(
    ("name", "expected"), [("bump_", {"add_": 1, "relu_": 1}), ("grow_", {"mul_": 1})]
)
def test_fc48_an_argument_changed_in_place_is_fresh_in_each_call(case, name, expected):
    outcomes = case(f"FC48:{name}", "eager", QUICK)
    assert operations(outcomes["eager"]) == expected
    assert codes(outcomes["eager"]) == codes(outcomes[QUICK]) == ["mutates-arguments"]


def test_fc55_strides_of_the_inputs_are_kept(case):
    # Were they made contiguous, a.t().contiguous() would copy both.
    assert operations(case("FC55:copy_t")["eager"]) == {"clone": 1, "add": 1}


# ── FC52, FC56: what functions return and take ───────────────────────────────────────────────────


@pytest.mark.parametrize("name", EXPECT)
def test_fc52_every_tensor_that_a_function_returns_is_found(name):
    import torch
    from cases import FC52_return_kinds

    returned = getattr(FC52_return_kinds, name)(torch.arange(8.0))
    assert len(list(tensors(returned))) == EXPECT[name]


@pytest.mark.parametrize("name", EXPECT)
def test_fc52_every_kind_of_result_is_counted(case, name):
    assert isinstance(case(f"FC52:{name}")["eager"], Capture)


@pytest.mark.parametrize(
    ("name", "inputs", "expected"),
    [
        ("kw_only", (), {"mul": 1, "zeros_like": 1, "where": 1}),
        ("ints_and_mask", ("f32[N]", "3", "bool[N]"), {"masked_fill": 1, "roll": 1}),
        ("var_args", ("f32[N]", "f32[N]"), {"add": 2, "mul": 1}),
        ("needs_none", ("f32[N]", "f32[N]"), {"add": 1}),
        ("positional_only", ("f32[N]", "f32[N]"), {"add": 1}),
        ("wrapped", ("f32[N]", "f32[N]"), {"mul": 1}),
        ("gain3", ("f32[N]",), {"mul": 1}),
        ("as_lambda", ("f32[N]", "f32[N]"), {"sub": 1}),
    ],
)
def test_fc56_every_kind_of_signature_is_called(case, name, inputs, expected):
    options = {"inputs": inputs, "sizes": (8,)} if inputs else {}
    outcomes = case(f"FC56:{name}", "eager", QUICK, **options)
    assert operations(outcomes["eager"]) == operations(outcomes[QUICK]) == expected


@pytest.mark.parametrize(
    ("name", "inputs", "said"),
    [
        ("kw_only", ("f32[N]",), "needs scale=..."),
        ("wrapped", (), "wrapped(x, y) needs y and takes no scale=, mask="),
        ("no_args", ("f32[N]",), "no_args() takes no positional arguments, not 1"),
    ],
)
def test_fc56_what_does_not_fit_is_one_clear_line_and_never_a_type_error(case, name, inputs, said):
    with pytest.raises(KernelcountError) as error:
        case(f"FC56:{name}", inputs=inputs)
    assert said in str(error.value)
    assert error.value.code == 2
    assert len(str(error.value).splitlines()) == 1


def test_fc56_a_function_without_parameters_is_called_without_the_files_maker(case):
    outcomes = case("FC56:no_args", "eager", QUICK)
    assert operations(outcomes["eager"]) == {"ones": 1, "add": 1}


# ── FC59, FC68 to FC70: results and failures ─────────────────────────────────────────────────────


def test_fc59_a_remembered_result_is_never_zero_operations(case):
    outcome = case("FC59:sly_softmax")["eager"]
    assert operations(outcome) == {"_softmax": 1}
    assert codes(outcome) == ["memoised"]


def test_fc68_a_late_exception_is_the_users(case):
    outcome = case("FC68:third_time_unlucky")["eager"]
    assert outcome == Unmeasured("eager", "raised ValueError: bad batch 3", None, 2)


def test_fc68_an_exit_with_code_0_is_no_success(case):
    outcome = case("FC68:exits")["eager"]
    assert outcome == Unmeasured("eager", "the function called sys.exit(0)", None, 2)


def test_fc69_a_profiler_of_the_functions_own_makes_the_count_unknown(case):
    outcome = case("FC69:self_profiled")["eager"]
    assert isinstance(outcome, Unmeasured)
    assert outcome.code == 3
    assert outcome.reason.startswith("another profiler")


def test_fc70_out_of_memory_is_one_line_and_no_other_variant_is_tried(case):
    eager, compiled = case("FC70:pairwise", "eager", "compile", sizes=(10_000_000,)).values()
    line = "out of memory: it asked for 400 TB; try a smaller --size, such as 1e4"
    assert eager == Unmeasured("eager", line, None, 3)
    assert compiled.reason == "not tried: eager asks for far more memory than there is"


def test_fc70_so_it_is_for_inputs(case):
    with pytest.raises(KernelcountError, match="out of memory: it asked for 4 TB; try a") as error:
        case("FC70:pairwise", sizes=(10**12,))
    assert error.value.code == 3


# ── FC10, FC64 to FC67: modules ──────────────────────────────────────────────────────────────────


def test_fc10_a_module_that_needs_triton_or_cuda_is_one_clear_line(case):
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    with pytest.raises(KernelcountError) as error:
        case("FC10:halve_")
    assert "triton, which is not" in str(error.value) or "needs CUDA" in str(error.value)
    assert "Traceback" not in str(error.value)


def test_fc65_a_file_loaded_by_path_may_hold_dataclasses_and_pickles(case):
    assert operations(case("FC65:scaled")["eager"]) == {"mul": 1}


def test_fc66_a_file_in_a_package_may_import_relatively(case):
    assert operations(case("FC66/sub/ops.py:f")["eager"]) == {"add": 1, "relu": 1}


def test_fc67_what_a_module_sets_for_all_is_respected_and_mentioned(case):
    outcome = case("FC67:step")["eager"]
    assert codes(outcome) == ["default-dtype", "grad-disabled"]
    assert outcome.target.inputs == ("f64[8]",)


# ── FC61, FC73 to FC78, FC81 ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("FC61:graphable", {"mm": 1, "relu": 1, "add": 1}),
        ("FC61:mixes_cpu", {"mul": 1, "add": 2}),
        ("FC73:conv_relu", {"convolution": 1, "relu": 1}),
        ("FC74:amp_linear", {"_to_copy": 2, "mm": 1}),
        ("FC76:Model", {"pow": 1, "mean": 1, "add": 1, "rsqrt": 1, "mul": 2}),
        ("FC78:linear_bias", {"addmm": 1}),
        ("FC78:mm_then_relu", {"mm": 1, "relu": 1}),
    ],
)
def test_other_cases_are_counted(case, name, expected):
    assert operations(case(name)["eager"]) == expected


def test_fc78_one_gemm_stays_a_library_operation(case):
    outcome = case("FC78:linear_bias", "compile")["compile"]
    assert operations(outcome) == {"addmm": 1}


def test_fc81_a_compiled_function_shows_its_generated_kernel(case):
    outcomes = case("FC39:add_relu", "eager", "compile")
    assert operations(outcomes["eager"]) == {"add": 1, "relu": 1}
    assert operations(outcomes["compile"]) == {"cpp_fused_add_relu_0": 1}
    assert outcomes["compile"].on_cpu
