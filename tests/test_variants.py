"""Ways to run the target, and which targets can be run so."""

import pytest
from counting import codes, operations

from kernelcount.errors import UsageError
from kernelcount.variants import Variant, check_backend, parse, parse_all


@pytest.mark.parametrize(
    ("text", "variant"),
    [
        ("eager", Variant("eager", "eager")),
        ("compile", Variant("compile", "compile")),
        (
            "compile:reduce-overhead",
            Variant("compile:reduce-overhead", "compile", (("mode", "reduce-overhead"),)),
        ),
        (
            "compile:fullgraph,dynamic,backend=aot_eager",
            Variant(
                "compile:fullgraph,dynamic,backend=aot_eager",
                "compile",
                (("fullgraph", True), ("dynamic", True), ("backend", "aot_eager")),
            ),
        ),
        ("mine.ops:fast", Variant("mine.ops:fast", "module:function", spec="mine.ops:fast")),
        ("../ops.py:fast", Variant("../ops.py:fast", "module:function", spec="../ops.py:fast")),
    ],
)
def test_a_variant_is_spelt_as_the_contract_has_it(text, variant):
    assert parse(text) == variant


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "egar",
            "'egar' is not eager, compile, compile:OPTION or module:function; did you mean eager?",
        ),
        ("", "'' is not eager"),
        (":f", "':f' is not eager"),
        ("compile:", "compile:: '' is not one of default"),
        ("compile:max-autotun", "did you mean max-autotune?"),
        ("compile:backend=", "'backend=' is not one of"),
        ("compile:dynamic,dynamic", "dynamic is given twice"),
        ("compile:default,max-autotune", "mode is given twice"),
    ],
)
def test_a_misspelt_variant_is_refused_with_the_nearest_name(text, said):
    with pytest.raises(UsageError, match="--variant") as error:
        parse(text)
    assert said in str(error.value)


def test_without_any_there_are_eager_and_compile():
    assert [variant.name for variant in parse_all(())] == ["eager", "compile"]


def test_a_variant_that_stands_twice_is_refused():
    with pytest.raises(UsageError, match="--variant compile stands twice"):
        parse_all(("eager", "compile", "compile"))


def test_an_unknown_backend_is_refused_with_the_nearest_name():
    with pytest.raises(UsageError, match=r"knows no backend inducto, but .*did you mean inductor"):
        check_backend(parse("compile:backend=inducto"))


@pytest.mark.parametrize(
    "text", ["compile", "eager", "compile:backend=aot_eager", "compile:dynamic"]
)
def test_a_backend_that_torch_knows_is_fine(text):
    check_backend(parse(text))


TARGETS = """
import functools

class Callable:
    def __call__(self, x): return x + 1

class Net(torch.nn.Module):
    def forward(self, x): return (x + 1).relu()
    def other(self, x): return x * 2

def plain(x): return (x + 1).relu()
def scaled(x, by): return x * by
decorated = torch.compile(plain, backend="eager")
def outer(x): return decorated(x) * 2
inside = lambda x: torch.compile(plain, backend="eager")(x)
net = Net()
optimised = torch.compile(Net(), backend="eager")
in_place = Net()
in_place.compile(backend="eager")
partial = functools.partial(scaled, by=3.0)
anonymous = lambda x: x - 1
instance = Callable()
method = net.other
relu = torch.relu
def chunks(x):
    for part in x.chunk(2):
        yield part + 1
"""
COUNTS = {
    "plain": {"add": 1, "relu": 1},
    "decorated": {"add": 1, "relu": 1},
    "outer": {"add": 1, "relu": 1, "mul": 1},
    "inside": {"add": 1, "relu": 1},
    "net": {"add": 1, "relu": 1},
    "Net": {"add": 1, "relu": 1},
    "Net.other": {"mul": 1},
    "optimised": {"add": 1, "relu": 1},
    "in_place": {"add": 1, "relu": 1},
    "partial": {"mul": 1},
    "anonymous": {"sub": 1},
    "instance": {"add": 1},
    "method": {"mul": 1},
    "relu": {"relu": 1},
    "chunks": {"add": 2},
}


@pytest.mark.parametrize("name", COUNTS)
def test_every_kind_of_target_runs_eagerly_and_compiled(count, target, name):
    spec = f"{target(TARGETS)}:{name}"
    compiled = "compile:backend=eager"
    outcomes = count(spec, "eager", compiled, inputs=("f32[8]",))
    assert operations(outcomes["eager"]) == COUNTS[name]
    assert operations(outcomes[compiled]) == COUNTS[name]
    compiled_already = name in ("decorated", "outer", "inside", "optimised", "in_place")
    assert codes(outcomes["eager"]) == (["compiled-already"] if compiled_already else [])
    # torch.compile takes a generator function and runs it as it is.
    assert codes(outcomes[compiled]) == (["not-compiled"] if name == "chunks" else [])


def test_eager_is_eager_although_the_function_is_compiled_already(count, target):
    spec = target("""
        def backend(graph, inputs):
            return lambda *args: (torch.full((3,), 7.0),)
        @torch.compile(backend=backend)
        def f(x):
            return x + 1
    """)
    outcome = count(f"{spec}:f", inputs=("f32[3]",))["eager"]
    assert operations(outcome) == {"add": 1}
    assert codes(outcome) == ["compiled-already"]
    assert outcome.notes[0].detail == "compiled already, and run uncompiled: f"


def test_a_variant_whose_options_do_not_hold_says_so(count, target):
    spec = target("""
        def owners(graph, inputs): return graph
        def f(x): return x + 1
        class Net(torch.nn.Module):
            def forward(self, x): return x + 1
        decorated = torch.compile(f, backend=owners)
        net = Net()
        net.compile(backend=owners)
    """)
    variant = "compile:backend=eager"
    outcomes = [
        count(f"{spec}:{name}", variant, inputs=("f32[3]",))[variant]
        for name in ("decorated", "net")
    ]
    assert [codes(outcome) for outcome in outcomes] == [[], ["own-options"]]
    detail = "compiled already, and run by its owner's options, not the variant's: Net"
    assert outcomes[1].notes[0].detail == detail


def test_another_implementation_that_is_compiled_already_runs_so_without_a_note(count, target):
    spec = target("""
        def f(x): return x + x
        g = torch.compile(f, backend="eager")
    """)
    outcome = count(f"{spec}:f", f"{spec}:g", inputs=("f32[8]",))[f"{spec}:g"]
    assert codes(outcome) == []
    outcome = count(f"{spec}:f", f"{spec}:g", "eager", inputs=("f32[8]",))["eager"]
    assert codes(outcome) == []


def test_of_many_functions_that_are_compiled_already_some_are_named(count, target):
    spec = target("""
        def made(n):
            def f(x): return x + n
            f.__qualname__ = f"f{n}"
            return torch.compile(f, backend="eager")
        every = [made(n) for n in range(5)]
        def f(x):
            for g in every:
                x = g(x)
            return x
    """)
    outcome = count(f"{spec}:f", inputs=("f32[3]",))["eager"]
    assert outcome.notes[0].detail.endswith(": f0, f1, f2 and 2 more")


def test_another_implementation_runs_as_it_is(count, target):
    spec = target("""
        def f(x): return x + x
        def g(x): return x * 2 + 0
    """)
    outcomes = count(f"{spec}:f", f"{spec}:g", inputs=("f32[8]",))
    assert operations(outcomes[f"{spec}:g"]) == {"mul": 1, "add": 1}


@pytest.mark.parametrize("other", ["beside_it.py:g", "beside_it:g"])
def test_another_implementation_is_found_beside_the_targets_file(
    count, target, monkeypatch, tmp_path, other
):
    target("def g(x): return x * 2", "beside_it.py")
    spec = target("def f(x): return x + x")
    monkeypatch.chdir("/")
    assert operations(count(f"{spec}:f", other)[other]) == {"mul": 1}


def test_one_in_the_current_folder_goes_before_one_beside_the_target(
    count, target, monkeypatch, tmp_path
):
    target("def g(x): return x * 2", "other.py")
    target("def g(x): return x - 2", "here/other.py")
    spec = target("def f(x): return x + x")
    monkeypatch.chdir(tmp_path / "here")
    assert operations(count(f"{spec}:f", "other.py:g")["other.py:g"]) == {"sub": 1}


def test_another_module_is_put_into_eval_mode_too(count, target):
    spec = target("""
        class A(torch.nn.Dropout): pass
        class B(torch.nn.Dropout): pass
    """)
    outcomes = count(f"{spec}:A", "eager", f"{spec}:B", inputs=("f32[8]",), evaluate=True)
    assert [operations(outcome) for outcome in outcomes.values()] == [{}, {}]
