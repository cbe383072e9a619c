# ruff: noqa: UP045  # Optional is what users write
from __future__ import annotations

import functools
import subprocess
import sys
from collections import namedtuple
from collections.abc import Callable
from contextlib import suppress
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, NewType, Optional, TypeVar

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode

from kernelcount.errors import UsageError, UserCodeError
from kernelcount.inputs import (
    DTYPES,
    Arguments,
    InputOptions,
    build,
    check_fit,
    describe,
    find_maker,
    heeds_size,
    parse_size,
    parse_sizes,
    parse_spec,
)

if TYPE_CHECKING:
    from somewhere import Config

T = TypeVar("T")
Array = NewType("Array", torch.Tensor)
Pair = namedtuple("Pair", "lo hi")

UNHURRIED = settings(deadline=None)  # an example may have to wait for a core


def add(x, y):
    return x + y


def kw_only(x, *, scale: float, mask: Optional[torch.Tensor] = None, keep: bool = True):
    return x * scale


def ints_and_mask(x: torch.Tensor, k: int, mask: torch.Tensor):
    return x


def positional_only(x, y, /):
    return x + y


def var_args(*tensors, **opts):
    return sum(tensors)


def no_args():
    return 1


def refusal(function: Callable[..., Any], maker=None, **options) -> str:
    with pytest.raises(UsageError) as caught:
        build(function, InputOptions(**options), maker)
    return str(caught.value)


def described(function: Callable[..., Any], maker=None, **options) -> tuple[str, ...]:
    return describe(build(function, InputOptions(**options), maker))


# ── sizes ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1000", 1000),
        ("1e8", 10**8),
        ("1E+3", 1000),
        ("1.5e3", 1500),
        ("1_000_000", 10**6),
        ("64k", 64_000),
        ("64K", 64_000),
        ("2M", 2 * 10**6),
        ("1G", 10**9),
        ("0.5M", 500_000),
        (" 8 ", 8),
        ("0", 0),
    ],
)
def test_a_size_is_read_in_each_way_of_writing_it(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-1",
        "+1",
        "1.5",
        "1.5e0",
        "1e-1",
        "nan",
        "inf",
        "many",
        "1__0",
        "0x10",
        "1e8 1",
        "٣",
        "k",
    ],
)
def test_what_is_no_whole_number_is_no_size(text):
    with pytest.raises(
        UsageError, match=r"write a (whole number|size) such as 1e8, 1_000_000 or 64k"
    ):
        parse_size(text)


@pytest.mark.parametrize("text", ["1e400", "9223372036854775808", "1e9999G"])
def test_a_size_beyond_64_bits_is_refused(text):
    with pytest.raises(UsageError, match="too large for a size"):
        parse_size(text)


@UNHURRIED
@given(st.integers(0, 2**63 - 1))
def test_every_integer_is_its_own_size(number):
    assert parse_size(str(number)) == number
    assert parse_size(f"{number:_}") == number


@UNHURRIED
@given(st.text(max_size=12))
def test_any_text_is_a_size_or_a_usage_error(text):
    with suppress(UsageError):
        assert parse_size(text) >= 0


def test_sizes_are_a_list_with_commas():
    assert parse_sizes("8") == (8,)
    assert parse_sizes("1e3, 64k,8") == (1000, 64_000, 8)
    with pytest.raises(UsageError, match="'' is not a size"):
        parse_sizes("8,")


# ── specs ────────────────────────────────────────────────────────────────────────────────────────


takes_unknown = torch.relu  # its parameters cannot be read


@pytest.mark.parametrize("dtype", DTYPES)
def test_each_dtype_can_be_asked_for(dtype):
    spec = parse_spec(f"{dtype}[N,1024]")
    assert (spec.name, spec.dtype, spec.shape) == (None, dtype, ((1, 1), (1024, 0)))
    assert described(takes_unknown, specs=(f"{dtype}[N,4]",), size=2) == (f"{dtype}[2,4]",)


@pytest.mark.parametrize(
    ("dims", "shape"),
    [
        ("", ()),
        ("N", (10,)),
        ("1e3,64k", (1000, 64_000)),
        ("4*N, N*N", (40, 100)),
        ("2*N*3", (60,)),
        ("0,N", (0, 10)),
    ],
)
def test_a_dimension_is_a_number_or_n_or_a_product(dims, shape):
    (tensor,) = build(torch.relu, InputOptions(size=10, specs=(f"u8[{dims}]",))).args
    assert tuple(tensor.shape) == shape


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3.0", 3.0),
        ("-1", -1),
        ("None", None),
        ("True", True),
        ("'text'", "text"),
        ("(1, 2)", (1, 2)),
        ("[1, 2]", [1, 2]),
        ("1e3", 1000.0),
    ],
)
def test_a_python_value_is_passed_as_it_is(text, value):
    spec = parse_spec(text)
    assert (spec.dtype, spec.name) == (None, None)
    assert spec.value == value
    assert type(spec.value) is type(value)


def test_a_spec_may_name_its_parameter():
    assert parse_spec("scale=2").name == "scale"
    assert parse_spec("scale=2").value == 2
    assert parse_spec("mask = bool[N]").name == "mask"
    assert parse_spec("mask=bool[N]").dtype == "bool"
    assert parse_spec("'a=b'").value == "a=b"


def test_integers_stay_below_the_limit_and_reach_it():
    options = InputOptions(specs=("i64[1000]<3", "i32[1000]", "u8[1000] < 256", "i8[8]<1"))
    bounded, free, byte, zero = build(var_args, options).args
    assert bounded.unique().tolist() == [0, 1, 2]
    assert free.unique().tolist() == list(range(10))
    assert byte.max() > 200
    assert zero.unique().tolist() == [0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("f33[N]", "there is no dtype f33: did you mean f32? There are f16, bf16, f32, f64, i8,"),
        ("float32[N]", "there is no dtype float32: did you mean f32? There are"),
        ("q[N]", "there is no dtype q: there are f16, bf16"),
        ("f32[N,x]", "dimension 2 is 'x', but must be a whole number, N, or a product such as 4*N"),
        ("f32[N,]", "dimension 2 is ''"),
        ("f32[-1]", "dimension 1 is '-1'"),
        ("f32[N+1]", "dimension 1 is 'N+1'"),
        ("f32[N*]", "dimension 1 is 'N*'"),
        ("f32", "f32 needs a shape, such as f32[N]"),
        ("f32[N", "the ] is missing"),
        ("i64[N]>3", "after ], '>3' must be <LIMIT or nothing"),
        ("i64[N]<", "after ], '<' must be <LIMIT or nothing"),
        ("f32[N]<3", "<3 is for integers, and f32 is none: leave it out"),
        ("bool[N]<2", "<2 is for integers, and bool is none: leave it out"),
        ("i8[N]<1000", "after <, i8 needs a number from 1 to 128"),
        ("i64[N]<0", "after <, i64 needs a number from 1 to 9223372036854775807"),
        ("i64[N]<-1", "after <, i64 needs a number from 1 to"),
        ("none", "write None"),
        ("flag=true", "write True"),
        ("text", "'text' is neither a tensor such as f32[N,1024] nor a Python value such as 3.0"),
        ("x=", "'' is neither a tensor"),
        ("", "'' is neither a tensor"),
        ("__import__('os')", "is neither a tensor"),
    ],
)
def test_a_bad_spec_says_what_is_wrong_where(text, message):
    with pytest.raises(UsageError) as caught:
        parse_spec(text)
    assert str(caught.value).startswith(f"--input {text}: ")
    assert message in str(caught.value)


@UNHURRIED
@given(st.text(alphabet="fi32bol[]N,*<=1 '(x-", max_size=14))
def test_any_text_is_a_spec_or_a_usage_error(text):
    with suppress(UsageError):
        assert parse_spec(text).text == text


def test_sizes_and_specs_are_read_without_torch():
    script = (
        "import sys; from kernelcount.inputs import parse_sizes, parse_spec\n"
        "parse_sizes('8,64k'); parse_spec('i64[N]<5'); parse_spec('x=3')\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


# ── arguments from specs ─────────────────────────────────────────────────────────────────────────


def test_specs_give_arguments_in_order_and_by_name():
    options = InputOptions(size=5, specs=("f32[N]", "scale=3.0", "mask=bool[N]"))
    assert describe(build(kw_only, options)) == ("f32[5]", "scale=3.0", "mask=bool[5]")


def test_n_is_a_million_where_no_size_is_given():
    assert described(torch.relu, specs=("bool[N]",)) == ("bool[1000000]",)


def test_specs_win_over_a_maker():
    assert described(add, specs=("f32[2]", "3"), maker=lambda: 1 / 0) == ("f32[2]", "3")


def test_where_all_specs_are_named_the_rest_is_generated():
    assert described(kw_only, specs=("scale=3.0",), size=5) == ("f32[5]", "scale=3.0")
    arguments = build(ints_and_mask, InputOptions(size=5, specs=("k=2",)))
    assert describe(arguments) == ("f32[5]", "k=2", "mask=f32[5]")


def test_specs_that_do_not_fit_are_explained():
    assert refusal(ints_and_mask, specs=("f32[2]",)) == (
        "--input gives (x0) but ints_and_mask(x, k, mask) needs k, mask: "
        "give one --input for each argument"
    )
    assert "add(x, y) takes 2 positional arguments, not 3" in refusal(add, specs=("1", "2", "3"))
    assert "no_args() takes no positional arguments, not 1" in refusal(no_args, specs=("1",))
    assert "add(x, y) needs y and gets x twice" in refusal(add, specs=("1", "x=2"))
    assert "add(x, y) takes no z=" in refusal(add, specs=("1", "2", "z=2"))
    assert refusal(add, specs=("x=1", "x=2")) == "--input x=2: x= is given twice"


def test_a_parameter_that_is_positional_only_cannot_be_named():
    text = refusal(positional_only, specs=("x=1", "2"))
    assert "positional_only(x, y, /) needs y and takes no x=" in text


def test_a_shape_that_no_memory_holds_is_refused_at_once():
    assert "more than 2**63 elements" in refusal(add, size=10**8, specs=("f32[N*N*N]", "1"))


# ── generated arguments ──────────────────────────────────────────────────────────────────────────


def test_each_required_positional_parameter_gets_one_vector():
    arguments = build(add, InputOptions(size=8))
    assert describe(arguments) == ("f32[8]", "f32[8]")
    assert not torch.equal(*arguments.args)


def test_a_million_elements_are_generated_where_no_size_is_given():
    (x,) = build(lambda x: x, InputOptions()).args
    assert tuple(x.shape) == (1_000_000,)
    assert abs(x.mean()) < 0.01
    assert abs(x.std() - 1) < 0.01


def test_a_size_of_zero_is_a_size():
    assert described(add, size=0) == ("f32[0]", "f32[0]")


def test_the_same_seed_gives_the_same_values_and_another_others():
    def first(seed):
        return build(add, InputOptions(size=8, seed=seed)).args[0]

    assert torch.equal(first(0), first(0))
    assert not torch.equal(first(0), first(1))


def test_generating_leaves_the_user_s_random_state_alone():
    before = torch.get_rng_state()
    build(add, InputOptions(size=8, specs=("f32[N]", "i64[N]")))
    build(add, InputOptions(size=8))
    assert torch.equal(torch.get_rng_state(), before)


def test_the_dtype_is_the_one_asked_for_or_torch_s_default():
    assert described(add, size=2, dtype="bf16") == ("bf16[2]", "bf16[2]")
    torch.set_default_dtype(torch.float64)
    try:
        assert described(add, size=2) == ("f64[2]", "f64[2]")
    finally:
        torch.set_default_dtype(torch.float32)
    assert refusal(add, dtype="f33").startswith("--dtype: there is no dtype f33: did you mean f32?")


def test_the_device_is_the_one_asked_for_whatever_the_user_s_default():
    assert build(add, InputOptions(size=2, device="meta")).args[0].device.type == "meta"
    torch.set_default_device("meta")
    try:
        assert build(add, InputOptions(size=2)).args[0].device.type == "cpu"
    finally:
        torch.set_default_device(None)


def test_a_pretended_gpu_gets_fake_tensors():
    def own(n=4, device="cpu"):
        return torch.randn(n, device=device), torch.randint(0, 5, (n,), device=device)

    def own_on_cpu():
        return torch.randn(3), torch.ones(3)

    with FakeTensorMode():
        specs = ("f32[N]", "i64[N]<5")
        for arguments in (
            build(add, InputOptions(size=4, device="cuda")),
            build(add, InputOptions(size=4, device="cuda", specs=specs)),
            build(add, InputOptions(device="cuda"), own),
            build(add, InputOptions(device="cuda"), own_on_cpu),
        ):
            assert [t.device.type for t in arguments.args] == ["cuda", "cuda"]


def test_parameters_with_a_default_are_left_to_it():
    def bias_last(x, bias=None, scale: float = 2.0):
        return x

    assert described(bias_last, size=4) == ("f32[4]",)
    assert described(no_args) == ()


def test_wrapped_and_partial_functions_show_their_own_parameters():
    @functools.wraps(add)
    def wrapper(*args, **kwargs):
        return add(*args, **kwargs)

    assert described(wrapper, size=4) == ("f32[4]", "f32[4]")
    assert described(functools.partial(kw_only, scale=3.0), size=4) == ("f32[4]",)
    assert described(lambda x, y: x - y, size=4) == ("f32[4]", "f32[4]")


class Scale(torch.nn.Module):
    def forward(self, x, factor: int):
        return x * factor


def test_a_module_takes_what_its_forward_takes():
    assert described(torch.nn.ReLU(), size=4) == ("f32[4]",)
    assert refusal(Scale()) == "Scale needs factor=...: give it with --input factor=3"
    assert described(functools.partial(Scale(), factor=3), size=4) == ("f32[4]",)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, from its first compile
def test_a_compiled_module_takes_what_the_module_takes():
    assert described(torch.compile(torch.nn.ReLU()), size=4) == ("f32[4]",)
    assert refusal(torch.compile(Scale())).startswith("Scale needs factor=...")
    assert described(torch.compile(add), size=4) == ("f32[4]", "f32[4]")


class Shaped(type):
    """As shape annotations are made: Float[Tensor, "n"] is a class of that name."""


Float = Shaped('Float[Tensor, "n"]', (), {})


@pytest.mark.parametrize(
    "annotation",
    [
        Any,
        object,
        torch.Tensor,
        torch.nn.Parameter,
        Optional[torch.Tensor],
        torch.Tensor | None,
        int | torch.Tensor,
        Optional["torch.Tensor"],
        Annotated[torch.Tensor, "n"],
        Array,
        T,
        Float,
        "torch.Tensor",
        "Tensor | None",
        "Optional[Tensor]",
        "Float[Tensor, 'n']",
        "Missing | torch.Tensor",
        "typing.Any",
        "Unfinished[Tensor",
    ],
)
def test_a_parameter_that_may_be_a_tensor_gets_one(annotation):
    def f(x):
        return x

    f.__annotations__["x"] = annotation
    assert described(f, size=4) == ("f32[4]",)


@pytest.mark.parametrize(
    ("annotation", "remedy"),
    [
        (int, "give it with --input x=3"),
        (float, "give it with --input x=3.0"),
        (bool, "give it with --input x=True"),
        (str, "give it with --input x=\"'text'\""),
        ("int", "give it with --input x=3"),
        ("Missing | float", "give it with --input x=3.0"),
        (int | None, "give it with --input x=3"),
        (Optional[float], "give it with --input x=3.0"),
        (list[int], 'give it with --input x="[1, 2]"'),
        ("tuple[int, Missing]", 'give it with --input x="(1, 2)"'),
        (list[torch.Tensor], 'give it with --input x="[1, 2]"'),
        ("Callable[[Tensor], Tensor]", "write make_inputs(n, device) in the file"),
        (Callable[[torch.Tensor], torch.Tensor], "write make_inputs(n, device) in the file"),
        (dict[str, torch.Tensor], "write make_inputs(n, device) in the file"),
        (type(sys), "write make_inputs(n, device) in the file"),
        ("Config", "write make_inputs(n, device) in the file"),
    ],
)
def test_a_parameter_that_is_no_tensor_is_asked_for_by_name(annotation, remedy):
    def f(x):
        return x

    f.__annotations__["x"] = annotation
    assert refusal(f).startswith(f"f needs x=...: {remedy}")


def test_an_annotation_that_cannot_be_evaluated_does_not_hide_the_others():
    def f(x: torch.Tensor, config: Config):
        return x

    assert refusal(f).startswith("f needs config=...: write make_inputs(n, device) in the file")


def test_required_keyword_only_parameters_are_asked_for():
    def f(x, *, mask, scale: float):
        return x

    assert refusal(kw_only) == "kw_only needs scale=...: give it with --input scale=3.0"
    assert refusal(f) == (
        "f needs mask=..., scale=...: give them with --input mask=f32[N] --input scale=3.0"
    )


def test_a_positional_only_value_is_asked_for_in_order():
    def f(k: int, x, /):
        return x

    assert refusal(f) == "f needs k=...: give every argument, in order, with --input"


def test_a_function_of_any_number_of_tensors_asks_how_many():
    assert refusal(var_args) == (
        "var_args takes *tensors: say how many with --input, once for each, "
        "such as --input f32[N] --input f32[N]"
    )
    assert described(var_args, specs=("f32[2]", "f32[2]", "gain=2.0"))[-1] == "gain=2.0"


def test_a_function_whose_parameters_cannot_be_read_asks_for_inputs():
    assert refusal(torch.relu) == (
        "what relu takes cannot be read: give each argument with --input, such as --input f32[N]"
    )
    assert described(torch.relu, specs=("f32[3]",)) == ("f32[3]",)


# ── arguments from a maker ───────────────────────────────────────────────────────────────────────


def test_the_file_s_own_maker_is_found():
    module = ModuleType("ops")
    assert find_maker(module) is None
    module.get_inputs = lambda: 1
    assert find_maker(module) is module.get_inputs
    module.make_inputs = lambda: 2
    assert find_maker(module) is module.make_inputs
    module.make_inputs = "not a function"
    assert find_maker(module) is module.get_inputs


def offered(maker, **options):
    """What the maker was called with."""
    return build(var_args, InputOptions(**options), maker).args[0]


def test_a_maker_gets_those_of_the_options_that_it_takes():
    def all_of(n=1, size=2, device="x", dtype=None):
        return ((n, size, device, dtype),)

    assert offered(all_of) == (1, 2, "cpu", None)
    assert offered(all_of, size=8, dtype="bf16") == (8, 8, "cpu", torch.bfloat16)
    assert offered(lambda size=3, *, dtype=4: ((size, dtype),), size=0) == (0, 4)
    assert offered(lambda: ("nothing",), size=8, dtype="f16") == "nothing"


def test_a_maker_that_requires_a_size_or_a_dtype_gets_the_default():
    assert offered(lambda n, size, dtype: ((n, size, dtype),)) == (10**6, 10**6, torch.float32)


def test_a_maker_of_any_keywords_gets_the_device():
    assert offered(lambda **options: (options,), size=8) == {"device": "cpu"}
    assert offered(lambda n=1, **options: ((n, options),), size=8) == (8, {"device": "cpu"})


def test_a_maker_that_needs_something_else_is_refused():
    def make_inputs(n, batch, /, width):
        return n

    assert refusal(add, make_inputs) == (
        "make_inputs needs n, batch, width, but is called with those of n, size, device and dtype "
        "that it takes, by name: give n, batch, width a default"
    )


X, Y = torch.zeros(2), torch.ones(2)


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ((X, Y), Arguments((X, Y), {})),
        ([X, Y], Arguments((X, Y), {})),
        ({"x": X, "y": Y}, Arguments((), {"x": X, "y": Y})),
        (((X, Y), {}), Arguments((X, Y), {})),
        (([X], {"y": Y}), Arguments((X,), {"y": Y})),
        (((), {"x": X, "y": Y}), Arguments((), {"x": X, "y": Y})),
        ([[X], {"y": Y}], Arguments(([X], {"y": Y}), {})),
        ((X, {"y": Y}), Arguments((X, {"y": Y}), {})),
        (Pair([X], {"y": Y}), Arguments(([X], {"y": Y}), {})),
    ],
)
def test_a_maker_returns_arguments_in_several_forms(result, expected):
    arguments = build(add, InputOptions(), lambda: result)
    assert arguments.args == expected.args
    assert arguments.kwargs == expected.kwargs


def test_a_single_tensor_is_one_argument():
    assert build(lambda x: x, InputOptions(), lambda: X).args == (X,)


@pytest.mark.parametrize(
    ("result", "kind"),
    [(None, "None"), (3, "a int"), ("ab", "a str"), (iter([X]), "a list_iterator")],
)
def test_what_a_maker_may_not_return_is_named(result, kind):
    def make_inputs():
        return result

    assert refusal(add, make_inputs) == (
        f"make_inputs() returned {kind}: return a tuple of arguments, a dict of them by name, "
        f"or (args, kwargs)"
    )


def test_a_dict_of_arguments_is_by_name():
    text = refusal(add, lambda: {0: X})
    assert "returned a dict with the key 0: keys are parameter names" in text


def test_a_maker_that_does_not_fit_the_function_is_explained():
    def make_inputs(n=8):
        return (torch.ones(n),), {"scale": 2.0, "mask": None}

    assert refusal(positional_only, make_inputs) == (
        "make_inputs() gives (x0), scale=, mask= but positional_only(x, y, /) needs y and takes no "
        "scale=, mask=: give --input for each argument, or name another maker with --inputs"
    )
    assert "kw_only(x, *, scale, mask=..., keep=...) needs x, scale=...:" in refusal(
        kw_only, lambda: ()
    )
    assert "gives nothing but add(x, y) needs x, y" in refusal(add, lambda: ())


def test_a_maker_s_random_values_repeat_and_the_user_s_state_stays():
    def make_inputs():
        return (torch.rand(4),)

    before = torch.get_rng_state()
    first = build(var_args, InputOptions(seed=7), make_inputs).args[0]
    assert torch.equal(torch.get_rng_state(), before)
    torch.rand(3)
    assert torch.equal(build(var_args, InputOptions(seed=7), make_inputs).args[0], first)
    assert not torch.equal(build(var_args, InputOptions(seed=8), make_inputs).args[0], first)


def test_the_random_state_stays_where_a_maker_raises():
    def make_inputs():
        torch.rand(4)
        raise ValueError("no data")

    before = torch.get_rng_state()
    with pytest.raises(ValueError, match="no data"):
        build(add, InputOptions(), make_inputs)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_maker_that_exits_is_an_error():
    with pytest.raises(UserCodeError, match=r"make_inputs\(\) called sys.exit\(0\)"):
        build(add, InputOptions(), make_inputs_that_exits)


def make_inputs_that_exits():
    sys.exit(0)


make_inputs_that_exits.__name__ = "make_inputs"


# "meta" stands for a device that is not the CPU.


def test_cpu_tensors_of_a_maker_without_a_device_are_moved():
    shared = torch.ones(2, 3).mT

    def make_inputs():
        return [shared, [shared, {"a": (torch.ones(1), 3)}], Pair(torch.ones(1), None)]

    arguments = build(var_args, InputOptions(device="meta"), make_inputs)
    first, (again, nested), pair = arguments.args
    assert first.device.type == "meta"
    assert first is again
    assert first.stride() == shared.stride()
    assert nested["a"][0].device.type == "meta"
    assert nested["a"][1] == 3
    assert isinstance(pair, Pair)
    assert pair.lo.device.type == "meta"


def test_a_moved_tensor_that_requires_grad_is_still_a_leaf():
    def make_inputs():
        return {"x": torch.ones(2, requires_grad=True)}

    x = build(var_args, InputOptions(device="meta"), make_inputs).kwargs["x"]
    assert x.is_leaf
    assert x.requires_grad


def test_tensors_of_a_maker_that_takes_a_device_stay_where_they_are():
    def make_inputs(device):
        return torch.ones(2, device=device), torch.ones(2)

    arguments = build(add, InputOptions(device="meta"), make_inputs)
    assert [t.device.type for t in arguments.args] == ["meta", "cpu"]


# ── describing ───────────────────────────────────────────────────────────────────────────────────


def test_arguments_are_described_by_dtype_shape_and_value():
    arguments = Arguments(
        (
            torch.ones(2, 3),
            torch.tensor(1),
            None,
            [X, Y],
            (),
            {"a": X},
            "text",
            True,
            torch.nn.ReLU(),
        ),
        {"scale": 2.0, "mask": torch.ones(4, dtype=torch.bool)},
    )
    assert describe(arguments) == (
        "f32[2,3]",
        "i64[]",
        "None",
        "list(2)",
        "tuple(0)",
        "dict(1)",
        "'text'",
        "True",
        "ReLU",
        "scale=2.0",
        "mask=bool[4]",
    )


def test_a_dtype_without_a_short_name_has_torch_s():
    arguments = Arguments((torch.ones(2, dtype=torch.complex128), "x" * 100))
    assert describe(arguments) == ("complex128[2]", repr("x" * 40 + "..."))


def test_arguments_made_for_one_function_are_refused_where_another_does_not_take_them():
    def other(x, y):
        return x + y

    with pytest.raises(UsageError, match=r"other\(x, y\) needs y"):
        check_fit(other, Arguments((1,), {}))
    check_fit(other, Arguments((1, 2), {}))


def test_a_function_without_parameters_gets_nothing_from_a_maker_for_others():
    arguments = build(lambda: 1, InputOptions(), maker=lambda: (1, 2))
    assert arguments == Arguments((), {})


@pytest.mark.parametrize(
    ("function", "specs", "maker", "heeds"),
    [
        (lambda x: x, (), None, True),
        (lambda: 0, (), None, False),
        (lambda x: x, ("f32[64]",), None, False),
        (lambda x, y: x, ("f32[64]", "f32[4*N]"), None, True),
        (lambda x, y: x, ("y=f32[64]",), None, True),
        (lambda x, y=None: x, ("x=3",), None, False),
        (lambda x: x, (), lambda: 0, False),
        (lambda x: x, (), lambda device: 0, False),
        (lambda x: x, (), lambda *n, **size: 0, False),
        (lambda x: x, (), lambda n=3: 0, True),
        (lambda x: x, (), lambda *, size: 0, True),
        (lambda: 0, (), lambda n: 0, False),
    ],
)
def test_a_size_is_heeded_where_a_spec_or_a_maker_takes_it_or_an_argument_is_generated(
    function, specs, maker, heeds
):
    assert heeds_size(function, InputOptions(specs=specs), maker) is heeds
