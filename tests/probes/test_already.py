"""The adapter to what is compiled already. Where torch changes it, these tests know it first."""

import functools

import pytest
import torch
from torch.nn.attention.flex_attention import flex_attention

from kernelcount.probes.already import name_of
from kernelcount.probes.compiler import CompilerWatch

EAGER = {"backend": "eager"}


class Net(torch.nn.Module):
    def forward(self, x):
        return x.relu() + 1


def plain(x):
    return (x + 1).relu()


def in_place(module=Net, **options):
    made = module()
    made.compile(**(options or EAGER))
    return made


def part_of(module, **options):
    module[0].compile(**(options or EAGER))
    return module


decorated = torch.compile(plain, **EAGER)


def inside(x):
    return decorated(x) * 2


def made_inside(x):
    return torch.compile(lambda x: x + 1, **EAGER)(x)


@torch.compiler.disable
def let_be(x):
    return decorated(x)


def around(x):
    return let_be(x) * 2


def asked(function, stance, *args):
    """What is taken down of a call in this stance."""
    with CompilerWatch() as watch, torch.compiler.set_stance(stance):
        function(*(args or (torch.ones(4),)))
    assert watch.already.untold == []
    return watch.already


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (decorated, ["plain"]),
        (functools.partial(decorated), ["plain"]),
        (inside, ["plain"]),
        (made_inside, ["<lambda>"]),
        (around, ["plain"]),
        (torch.compile(Net(), **EAGER), ["Net"]),
        (torch.compile(Net().forward, **EAGER), ["Net"]),
        (in_place(), ["Net"]),
        (part_of(torch.nn.Sequential(Net(), torch.nn.ReLU())), ["Net"]),
        (torch.nn.Sequential(in_place(), in_place()), ["Net"]),
        (torch.compile(torch.relu, **EAGER), ["relu"]),
        (torch.compile(functools.partial(torch.add, torch.ones(4)), **EAGER), ["add"]),
        (torch.compile(torch.compile(plain, **EAGER), **EAGER), ["plain"]),
        (plain, []),
        (Net(), []),
        (torch.compiler.disable(plain), []),
    ],
)
def test_what_is_compiled_already_is_found_wherever_it_is_called(function, names):
    assert asked(function, "force_eager").uncompiled == names


@pytest.mark.filterwarnings("ignore:flex_attention called")
def test_what_torch_compiles_of_its_own_is_nobodys():
    def chosen(x):
        return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))

    q = torch.ones(1, 1, 16, 16)
    assert asked(chosen, "force_eager").uncompiled == []
    assert asked(flex_attention, "force_eager", q, q, q).uncompiled == []


@pytest.mark.filterwarnings("ignore:flex_attention called")
def test_an_op_of_torchs_that_its_user_has_compiled_is_theirs():
    q = torch.ones(1, 1, 16, 16)
    compiled = torch.compile(flex_attention, **EAGER)
    assert asked(compiled, "force_eager", q, q, q).uncompiled == ["flex_attention"]
    activated = torch.nn.TransformerEncoderLayer(
        4, 1, 4, batch_first=True, activation=torch.compile(torch.nn.functional.silu, **EAGER)
    )
    called = asked(activated, "force_eager", torch.ones(1, 2, 4))
    assert called.uncompiled == ["silu"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, of Inductor's import
@pytest.mark.parametrize(
    ("make", "options", "names"),
    [
        (lambda: decorated, {}, []),
        (lambda: inside, {}, []),
        (lambda: torch.compile(Net(), mode="reduce-overhead"), {}, []),
        (lambda: part_of(torch.nn.Sequential(Net(), torch.nn.ReLU())), {}, []),
        (lambda: around, {}, ["plain"]),
        (in_place, {}, ["Net"]),
        (in_place, EAGER, []),
        (in_place, {**EAGER, "fullgraph": True}, ["Net"]),
        (in_place, {**EAGER, "dynamic": True}, ["Net"]),
        (lambda: in_place(mode="reduce-overhead"), {"mode": "max-autotune"}, ["Net"]),
        (lambda: in_place(mode="reduce-overhead"), {"mode": "reduce-overhead"}, []),
    ],
)
def test_whose_options_hold_is_told(make, options, names, monkeypatch):
    # Which graph is compiled by what is all that matters here.
    monkeypatch.setattr("torch._inductor.compile_fx.compile_fx", lambda graph, *_, **__: graph)
    compiled = torch.compile(make(), **(options or {"backend": "aot_eager"}))
    assert asked(compiled, "default").by_own_options == names


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_inductor_was_asked_for_is_told_of_what_ran_compiled(monkeypatch):
    monkeypatch.setattr("torch._inductor.compile_fx.compile_fx", lambda graph, *_, **__: graph)
    graphs, tuned = {"mode": "reduce-overhead"}, {"mode": "max-autotune-no-cudagraphs"}
    for made, modes in (
        (torch.compile(plain, **graphs), {"cudagraphs"}),
        (torch.compile(plain, **tuned), {"autotuning"}),
        (torch.compile(plain, mode="max-autotune"), {"cudagraphs", "autotuning"}),
        (torch.compile(plain, options={"triton.cudagraphs": True}), {"cudagraphs"}),
        (torch.compile(in_place(**graphs)), {"cudagraphs"}),
        (torch.compile(torch.compile(plain, **graphs)), set()),
        (torch.compile(plain), set()),
        (plain, set()),
    ):
        assert asked(made, "default").modes == modes
    assert asked(torch.compile(plain, **graphs), "force_eager").modes == set()


def test_options_are_told_to_hold_by_which_backend_gets_the_graph():
    got = []

    def owners(graph, _):
        got.append("owner's")
        return graph

    def variants(graph, _):
        got.append("variant's")
        return graph

    for function in (torch.compile(plain, backend=owners), in_place(backend=owners)):
        asked(torch.compile(function, backend=variants), "default")
    assert got == ["variant's", "owner's"]


def test_afterwards_torch_is_as_it_was():
    from torch._dynamo import eval_frame

    real = eval_frame._callback_from_stance
    with CompilerWatch() as watch:
        assert eval_frame._callback_from_stance is not real
    assert eval_frame._callback_from_stance is real
    decorated(torch.ones(4))
    assert watch.already.uncompiled == []


def test_a_torch_without_the_name_is_said_to_be_blind(monkeypatch):
    from torch._dynamo import eval_frame

    monkeypatch.delattr(eval_frame, "_callback_from_stance")
    with CompilerWatch() as watch:
        said = f"cannot tell on torch {torch.__version__} what is compiled already"
        assert watch.blind == watch.blind_to_compiled == said


def test_names_are_those_that_the_user_gave():
    class Callable:
        def __call__(self, x):
            return x

        def method(self, x):
            return x

    assert name_of(plain) == "plain"
    assert name_of(Net().forward) == "Net"
    assert name_of(Callable().method) == "Callable.method"
    assert name_of(Callable()) == "Callable"
