"""The adapter to Dynamo. Where torch changes it, these tests know it first."""

import builtins
import logging

import pytest
import torch

from kernelcount.probes.compiler import CompilerWatch


def compiled(function, **options):
    return torch.compile(function, backend="eager", **options)


def test_this_torch_tells_all_that_is_asked():
    with CompilerWatch() as watch:
        assert watch.blind is None
        assert (watch.graphs, watch.cudagraph_skips, watch.compilations) == (0, 0, 0)


def test_graphs_and_compilations_are_counted():
    f = compiled(lambda x: x + 1)
    with CompilerWatch() as watch:
        f(torch.ones(2))
        assert (watch.graphs, watch.compilations) == (1, 1)
        f(torch.ones(2))
        assert (watch.graphs, watch.compilations) == (1, 1)


def test_dynamos_own_words_on_item_are_held_back_while_the_break_is_watched():
    from torch._dynamo.variables import tensor

    class Seen(logging.Handler):
        def emit(self, record):
            seen.append(record.getMessage())

    seen: list[str] = []
    handler = Seen()
    tensor.log.addHandler(handler)
    warn = tensor.TensorVariable._warn_capture_scalar_outputs
    try:
        for watched in (True, False):
            warn.cache_clear()  # it is given once a process
            torch.compiler.reset()
            if watched:
                with CompilerWatch():
                    compiled(lambda x: x * x.sum().item())(torch.ones(2))
                assert seen == []
            else:
                compiled(lambda x: x * x.sum().item())(torch.ones(2))
                assert [s.startswith("Graph break from `Tensor.item()`") for s in seen] == [True]
    finally:
        tensor.log.removeHandler(handler)


def test_a_graph_break_makes_two():
    def broken(x):
        x = x + 1
        torch._dynamo.graph_break()
        return x * 2

    with CompilerWatch() as watch:
        compiled(broken)(torch.ones(2))
        assert watch.graphs == 2


def test_the_limit_is_told_with_the_function_that_reached_it():
    def tagged(x, tag):
        return x + len(tag)

    f = compiled(tagged)
    with CompilerWatch() as watch, torch._dynamo.config.patch(recompile_limit=2):
        for i in range(5):
            f(torch.ones(2), "t" * i)
    assert watch.limit is not None
    assert watch.limit.startswith("recompile_limit (2) at 'tagged' (")
    assert "test_compiler.py" in watch.limit


def test_what_was_compiled_before_is_forgotten():
    f = compiled(lambda x: x + 1)
    f(torch.ones(2))
    with CompilerWatch() as watch:
        f(torch.ones(2))
        assert watch.graphs == 1


def test_inductors_reasons_for_doing_without_cuda_graphs_are_kept():
    from torch._inductor.cudagraph_utils import log_cudagraph_skip_and_bump_counter

    with CompilerWatch() as watch:
        for _ in range(2):
            log_cudagraph_skip_and_bump_counter(
                "skipping cudagraphs due to mutated inputs (1 instances). Found from :\n  File ..."
            )
        log_cudagraph_skip_and_bump_counter("skipping cudagraphs due to cpu device (arg0)")
    assert watch.skip_reasons == ["mutated inputs (1 instances)", "cpu device (arg0)"]
    assert watch.cudagraph_skips == 3


def test_after_the_watch_nothing_is_counted():
    from torch._dynamo.callback import callback_handler

    f = compiled(lambda x: x + 1)
    handlers = list(logging.getLogger("torch._dynamo.convert_frame").handlers)
    with CompilerWatch() as watch:
        pass
    f(torch.ones(2))
    assert watch.compilations == 0
    assert not callback_handler.start_callbacks
    assert logging.getLogger("torch._dynamo.convert_frame").handlers == handlers


def test_counters_that_the_user_clears_do_not_go_below_zero():
    from torch._dynamo.utils import counters

    f = compiled(lambda x: x + 1)
    f(torch.ones(2))
    with CompilerWatch() as watch:
        counters.clear()
        f(torch.ones(2))
        assert watch.graphs == 1


@pytest.mark.parametrize(
    ("module", "untold"),
    [
        ("torch._dynamo.utils", "how many graphs were compiled"),
        ("torch._dynamo.callback", "when something is compiled"),
    ],
)
def test_a_torch_without_these_names_is_said_to_be_blind(monkeypatch, module, untold):
    real = builtins.__import__

    def without(name, *rest):
        if name == module and rest[0]["__name__"] == "kernelcount.probes.compiler":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with CompilerWatch() as watch:
        assert watch.blind == f"cannot tell on torch {torch.__version__} {untold}"
        if "graphs" in untold:
            assert watch.graphs is None


def test_a_log_that_is_off_hides_the_limit_and_that_is_said():
    logging.disable(logging.CRITICAL)
    try:
        with CompilerWatch() as watch:
            assert watch.blind is not None
            assert "whether the recompile limit was reached" in watch.blind
    finally:
        logging.disable(logging.NOTSET)
