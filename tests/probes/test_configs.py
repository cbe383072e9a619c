"""What torch.compile is set to is put back, and what a torch does not tell is left alone."""

import warnings
from importlib import import_module

import pytest
import torch
from torch._dynamo import eval_frame

from kernelcount.probes import configs


def test_this_torch_tells_all_of_it():
    """One that does not has no name of `configs` where it was."""
    assert len(configs.stance()) == 1
    assert len(configs._configs()) == len(configs.NAMES)


def test_a_stance_that_is_set_inside_is_put_back():
    before = eval_frame._stance
    with configs.kept():
        torch.compiler.set_stance("force_eager")
        assert eval_frame._stance.stance == "force_eager"
    assert eval_frame._stance is before


CHANGED = {
    "torch.compiler.config": ("job_id", "mine"),
    "torch._dynamo.config": ("recompile_limit", 3),
    "torch._functorch.config": ("activation_memory_budget", 0.5),
    "torch._inductor.config": ("triton.cudagraphs", True),
    "torch.fx.experimental._config": ("translation_validation", True),
}


@pytest.mark.parametrize("name", configs.NAMES)
def test_a_configuration_that_is_changed_inside_is_put_back(name):
    config = import_module(name)
    key, value = CHANGED[name]
    before = config.get_config_copy()

    def fails():
        setattr(config, key, value)
        assert config.get_config_copy() != before
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), configs.kept():
        fails()
    assert config.get_config_copy() == before


def test_a_list_that_is_changed_in_place_is_put_back():
    import torch._dynamo.config as dynamo

    before = set(dynamo.reorderable_logging_functions)
    with configs.kept():
        dynamo.reorderable_logging_functions.add(print)
    assert dynamo.reorderable_logging_functions == before


def test_a_pass_of_the_users_own_stays_the_same_object():
    import torch._inductor.config as inductor

    class Pass:
        def __call__(self, graph):
            pass

    mine = Pass()
    with inductor.patch(post_grad_custom_post_pass=mine):
        with configs.kept():
            inductor.post_grad_custom_post_pass = None
        assert inductor.post_grad_custom_post_pass is mine
        with configs.kept():
            pass
        assert inductor.post_grad_custom_post_pass is mine


def test_nothing_is_said_of_what_is_deprecated():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with configs.kept():
            pass


def test_a_torch_without_a_stance_to_ask_for_is_left_alone(monkeypatch):
    monkeypatch.delattr(eval_frame, "_set_stance")
    with configs.kept():
        pass


def test_a_torch_without_a_configuration_is_left_alone(monkeypatch):
    monkeypatch.setattr(
        configs, "NAMES", ("torch._no_such_config", "torch._dynamo.utils", "torch.utils")
    )
    assert configs._configs() == []
    with configs.kept():
        pass
