"""The keywords of the Python API: what they take, and what is said of anything else."""

import inspect
import math
from decimal import Decimal

import pytest

from kernelcount import UsageError, check, compare, count, keywords, read
from kernelcount.errors import UserCodeError

FUNCTIONS = (count, compare, check, read)
HAS = [
    (function, parameter)
    for function in FUNCTIONS
    for parameter in inspect.signature(function).parameters.values()
    if parameter.kind is inspect.Parameter.KEYWORD_ONLY
]
IDS = [f"{function.__name__}-{parameter.name}" for function, parameter in HAS]


def ask(function, **options):
    """Call it with what would be counted, were the options right."""
    given = () if function is check else (__file__,) if function is read else (abs, 1)
    return function(*given, **options)


@pytest.mark.parametrize(("function", "parameter"), HAS, ids=IDS)
def test_every_keyword_refuses_what_it_does_not_take_and_says_what_to_give(function, parameter):
    with pytest.raises(UsageError, match=f"^{parameter.name}: give .*, not <object object"):
        ask(function, **{parameter.name: object()})


@pytest.mark.parametrize(("function", "parameter"), HAS, ids=IDS)
def test_every_default_is_what_the_keyword_takes(function, parameter):
    keywords.check(**{parameter.name: parameter.default})


@pytest.mark.parametrize("function", FUNCTIONS)
def test_an_unknown_keyword_is_pythons_own_error(function):
    with pytest.raises(TypeError, match="unexpected keyword argument 'sizze'"):
        ask(function, sizze=1)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("kwargs", [3, "x", [1], {1: 2}]),
        ("variant", [3, None, "egar", "", ("eager",), "compile:foo"]),
        ("device", [3, "gpu", "", "cuda:x", "cpu:3"]),
        ("gpu", [3, "H300", ""]),
        ("backward", ["yes", None, 2]),
        ("no_grad", ["yes", None, 0]),
        ("evaluate", ["yes", None]),
        ("seconds", [-1, "1", None, math.nan, math.inf, True, 1j]),
        ("reference", ["x", None]),
        ("cold", ["x", None]),
        ("size", [-1, 0.5, "x", [1, 2], math.nan, math.inf, True, "1e2,1e3", 1e30]),
        ("inputs", ["f32[N]", 3, [3], ["f33[N]"], None, {"a": "f32[4]"}, [None]]),
        ("maker", [3, "x", [len]]),
        ("dtype", [3, "f33", ""]),
        ("seed", ["x", None, 1.5, 2**80, True]),
        ("timeout", [-1, "x", 0, math.nan, 5]),
    ],
)
def test_a_value_that_a_keyword_cannot_have_is_a_usage_error(name, values, monkeypatch):
    monkeypatch.setattr("kernelcount.worker.device.may_have_a_gpu", lambda: False)
    for value in values:
        with pytest.raises(UsageError):
            count(abs, **{name: value})


def test_of_variants_each_and_all_are_looked_at():
    for variants in (3, None, "eager", [None], ["egar"], [], ["eager", "eager"], {"eager"}):
        with pytest.raises(UsageError):
            compare(abs, 1, variants=variants)


def test_a_path_that_is_none_is_a_usage_error():
    for function in (read, check):
        with pytest.raises(UsageError, match="path: give the path of a file, not 3"):
            function(3)


def test_numbers_of_other_kinds_are_numbers():
    numpy = pytest.importorskip("numpy")
    keywords.check(seconds=numpy.float32(1), seed=numpy.int64(1), size=numpy.int32(4))
    keywords.check(timeout=1, size=1e8)
    with pytest.raises(UsageError):
        keywords.check(seconds=Decimal(1))


def test_a_value_that_is_long_or_cannot_be_shown_is_named_by_its_type():
    class Mute:
        def __repr__(self):
            raise ValueError

    assert keywords.shown("x") == "'x'"
    assert keywords.shown("x" * 500) == "what is of the type str"
    assert keywords.shown(Mute()) == "what is of the type Mute"


def test_what_count_and_compare_take_alike_has_the_same_type_and_default_in_both():
    one, several = (inspect.signature(function).parameters for function in (count, compare))
    assert set(one) ^ set(several) == {"variant", "variants"}
    differing = {name for name in set(one) & set(several) if one[name] != several[name]}
    assert differing == {"seconds"}  # count times nothing by itself
    assert one["seconds"].annotation == several["seconds"].annotation
    assert list(one)[:3] == list(several)[:3]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("--device 'papper' is not one of cuda", "device 'papper' is not one of cuda"),
        ("--input f32[]: give one --input for each", "inputs f32[]: give one inputs for each"),
        ("--input and --inputs exclude each other", "inputs and maker exclude each other"),
        ("--backward and --no-grad exclude", "backward and no_grad exclude"),
        ("--devices, x--device and --device-x", "--devices, x--device and --device-x"),
    ],
)
def test_errors_speak_of_keywords_and_not_of_flags(text, said):
    with pytest.raises(UsageError) as raised, keywords.spoken_of():
        raise UsageError(text)
    assert str(raised.value) == said


def test_what_the_users_code_says_stays_as_it_is():
    with pytest.raises(UserCodeError, match="--device"), keywords.spoken_of():
        raise UserCodeError("ValueError: --device")
