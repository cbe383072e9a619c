"""Modules and optimizers, and which tensors they hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


class KeptModule:
    """One module's mode, and which tensors it holds as parameters and buffers."""

    def __init__(self, module: torch.nn.Module) -> None:
        self._module = module
        self._training = module.training
        self._held = {
            **dict(module.named_parameters(recurse=False)),
            **dict(module.named_buffers(recurse=False)),
        }

    def restore(self) -> None:
        """Put both back."""
        module = self._module
        module.training = self._training
        for name, held in self._held.items():
            if getattr(module, name, None) is not held:
                setattr(module, name, held)


class KeptOptimizer:
    """An optimizer's settings, and which tensors its state holds."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self._optimizer = optimizer
        self._groups = [dict(group) for group in optimizer.param_groups]
        self._state = {key: dict(state) for key, state in optimizer.state.items()}

    def restore(self) -> None:
        """Put both back."""
        for group, held in zip(self._optimizer.param_groups, self._groups, strict=False):
            group.update(held)
        self._optimizer.state.clear()
        self._optimizer.state.update({key: dict(state) for key, state in self._state.items()})
