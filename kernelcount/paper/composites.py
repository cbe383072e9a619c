"""Ops that CUDA has made of other ops than the CPU has: what each is made of there.

For eager code they are registered with torch's dispatcher, under the key at which autograd meets a
tensor on the stand-in, or left to the mode below it. For traces only attention is needed, the rest
being decomposed there anyway.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kernelcount.paper import adapter, waits
from kernelcount.paper import attention as attending
from kernelcount.paper.cards import Card
from kernelcount.paper.log import Log
from kernelcount.paper.rules import Op
from kernelcount.paper.steps import leaves, mapped

Composites = dict[Any, Callable[..., Any]]


def for_card(card: Card, log: Log) -> Composites:
    """Each op with the function that stands for it on the card; `log` notes what it runs."""
    import torch

    aten = torch.ops.aten
    return {
        aten.scaled_dot_product_attention.default: attending.made_for(card.capability),
        aten.dropout.default: _dropout,
        aten.softmax.int: _softmax_by(aten.softmax.int, aten._softmax.default),
        aten.log_softmax.int: _softmax_by(aten.log_softmax.int, aten._log_softmax.default),
        aten.rms_norm.default: _rms_norm_into(log),
        aten.one_hot.default: _one_hot,
        aten.ctc_loss.Tensor: _ctc_loss,
        aten.is_nonzero.default: waits.is_nonzero,
        aten.mish_backward.default: _mish_backward_into(log),
        **_recurrent(log),
    }


def below_autograd() -> Composites:
    """The same for ops that have a gradient of their own, and are made of others beneath it."""
    import torch

    return {torch.ops.aten._safe_softmax.default: _safe_softmax}


def attention(composites: Composites) -> Callable[..., Any]:
    """The function that stands for scaled_dot_product_attention."""
    import torch

    return composites[torch.ops.aten.scaled_dot_product_attention.default]


@contextmanager
def under_autograd(composites: Composites) -> Iterator[None]:
    """Have torch's dispatcher call these functions for tensors on the stand-in."""
    import torch

    library = torch.library.Library("aten", "IMPL")
    try:
        for op, function in composites.items():
            # Dynamo would compile them, wherever it has left the user's code to run as it is.
            library.impl(op, torch.compiler.disable(function), "AutogradMeta")
        yield
    finally:
        adapter.unregister(library)


def _dropout(x: Any, p: float, train: bool) -> Any:
    """One kernel that draws and scales: Dropout.cpp, is_fused_kernel_acceptable."""
    import torch

    if not train or p == 0 or not x.numel():
        return x
    if p == 1:
        return x.mul(torch.zeros((), dtype=x.dtype, device=x.device))
    return torch.ops.aten.native_dropout.default(x, p, train)[0]


def _softmax_by(whole: Any, kernel: Any) -> Callable[..., Any]:
    """softmax, whose kernel on CUDA takes float16 and gives float32 at once: SoftMax.cpp."""
    import torch

    def made(x: Any, dim: int, dtype: Any = None) -> Any:
        if x.dtype == torch.float16 and dtype == torch.float32:
            return kernel(x, dim, True)
        return adapter.decomposed(whole, (x, dim, dtype), {})

    return made


def _safe_softmax(x: Any, dim: int, dtype: Any = None) -> Any:
    """Softmax, with zeros for rows of minus infinity: transformers/attention.cpp."""
    import torch

    result = torch.softmax(x, dim, dtype=dtype)
    masked = torch.all(x.isneginf(), dim, keepdim=True)
    return torch.where(
        masked, torch.scalar_tensor(0.0, dtype=result.dtype, device=x.device), result
    )


def _one_hot(index: Any, classes: int = -1) -> Any:
    """Zeros, and ones scattered into them (Onehot.cpp); on tensors without memory it compares."""
    import torch

    if classes == -1:
        classes = int(index.max().item()) + 1
    made = torch.zeros((*index.shape, classes), dtype=index.dtype, device=index.device)
    return made.scatter_(-1, index.unsqueeze(-1), 1)


def _ctc_loss(probabilities: Any, targets: Any, *lengths: Any, **options: Any) -> Any:
    """The lengths are read on the host (LossCTC.cpp), but for tensors without memory."""
    import torch

    inputs, outputs, *rest = lengths
    listed = inputs.tolist(), outputs.tolist()
    return torch.ops.aten.ctc_loss.IntList(probabilities, targets, *listed, *rest, **options)


def _mish_backward_into(log: Log) -> Callable[..., Any]:
    """mish_backward, one kernel on CUDA, and made of others elsewhere: native_functions.yaml."""
    import torch

    op = torch.ops.aten.mish_backward.default

    def backward(grad: Any, x: Any) -> Any:
        with log.summed() as done:
            result = adapter.decomposed(op, (grad, x), {})
        known = next(iter(done.items()), None)
        log.note_op(
            Op("mish_backward", "aten", (grad, x), {}, [grad, x], [result], pointwise=True), known
        )
        return result

    return backward


def _rms_norm_into(log: Log) -> Callable[..., Any]:
    """rms_norm, one kernel of its own on CUDA where weight and input have one dtype.

    Source: layer_norm.cpp.
    """
    import torch

    op = torch.ops.aten.rms_norm.default
    names = ("_fused_rms_norm",), ("_fused_rms_norm_backward",)
    fused = _Whole(op, log, *names, kept=_root_of_each_row, asked=_normed_back)

    def normalised(x: Any, shape: Any, weight: Any = None, eps: float | None = None) -> Any:
        """torch.rms_norm as CUDA has it."""
        if weight is not None and weight.dtype != x.dtype:
            return adapter.decomposed(op, (x, shape, weight, eps), {})
        return fused(x, list(shape), weight, eps)

    return normalised


def _root_of_each_row(x: Any, shape: Sequence[int], *_: Any) -> Any:
    """What rms_norm divides each row by: kept for its gradient, in a wider dtype than half.

    Source: cuda/layer_norm_kernel.cu, _fused_rms_norm_cuda.
    """
    import torch

    dtype = torch.promote_types(x.dtype, torch.float32)
    return torch.empty(x.shape[: x.dim() - len(shape)], dtype=dtype, device=x.device)


def _normed_back(
    call: _Call, grads: Sequence[Any], kept: Sequence[Any], wanted: Iterable[bool]
) -> tuple[Any, ...]:
    """The arguments of _fused_rms_norm_backward, as native_functions.yaml has them."""
    x, shape, weight, _ = call.args
    return *grads, x, shape, *kept, weight, list(wanted)


def _recurrent(log: Log) -> Composites:
    """Recurrent networks, which cuDNN runs whole, and cells, whose gates are one kernel (RNN.cpp).

    A cell multiplies by two matrices before. How many kernels cuDNN launches it does not tell.
    """
    import torch

    aten = torch.ops.aten
    made: Composites = {}
    for network in (aten.lstm, aten.gru, aten.rnn_tanh, aten.rnn_relu):
        for op in (network.input, network.data):
            made[op] = _Whole(op, log, ("_cudnn_rnn",), ("_cudnn_rnn_backward",))
    for cell in ("lstm_cell", "gru_cell"):
        op = getattr(aten, cell).default
        fused = f"_thnn_fused_{cell}"
        made[op] = _Whole(op, log, ("mm", "mm", fused), (f"{fused}_backward",))
    return made


@dataclass(frozen=True, slots=True)
class _Call:
    """A call of a composite op, to be made with tensors that stand for those that it was given."""

    op: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def tensors(self) -> list[Any]:
        """Those that it was given, in order."""
        return _tensors((self.args, self.kwargs))

    def made_of(self, tensors: Iterable[Any]) -> Any:
        """What it gives, by the ops that it is made of."""
        waiting = iter(tensors)

        def filled(value: Any) -> Any:
            return next(waiting) if hasattr(value, "layout") else value

        return adapter.decomposed(self.op, mapped(self.args, filled), mapped(self.kwargs, filled))


def _tensors(values: Any) -> list[Any]:
    return [t for t in leaves(values) if hasattr(t, "layout")]


def _gradients(
    call: _Call, given: Sequence[Any], grads: Sequence[Any], log: Log
) -> tuple[list[Any], Counter[str]]:
    """Gradients of what a call is given, from those of its results; and operations by precision.

    None where there is none, or is none wanted.
    """
    import torch

    with log.opened(to=False), torch.enable_grad():
        results = list(leaves(call.made_of(given)))
        pairs = [(r, g) for r, g in zip(results, grads, strict=True) if g is not None]
        inputs = [t for t in given if t.requires_grad]
        ends = [r for r, _ in pairs], inputs, [g for _, g in pairs]
        with log.summed() as done:
            made = iter(torch.autograd.grad(*ends, allow_unused=True))
    return [next(made) if t.requires_grad else None for t in given], done


class _Whole:
    """A composite op as the ops that CUDA runs for it: what it is made of elsewhere goes unnoted.

    `forward` and `backward` name them; `log` takes them. `kept`: gives for the arguments what the
    op writes besides its results, and its gradient reads; None where that is nothing. `asked`:
    gives the arguments of the op back, from the call, the gradients of its results, what was kept,
    and whether each tensor's gradient is wanted; None where nobody looks at them.
    """

    def __init__(
        self,
        op: Any,
        log: Log,
        forward: tuple[str, ...],
        backward: tuple[str, ...],
        kept: Callable[..., Any] | None = None,
        asked: Callable[..., tuple[Any, ...]] | None = None,
    ) -> None:
        import torch

        self._op, self._log = op, log
        note = self._note

        class Function(torch.autograd.Function):  # type: ignore[misc]
            """One op forward, and one back."""

            @staticmethod
            def forward(ctx: Any, call: _Call, *given: Any) -> Any:
                """What the op gives."""
                ctx.call = call
                ctx.save_for_backward(*given)
                ctx.set_materialize_grads(False)
                with log.summed() as done:
                    result = call.made_of(given)
                ctx.kept = [] if kept is None else [kept(*call.args)]
                note(forward, call.args, given, [result, ctx.kept], done)
                return result

            @staticmethod
            @torch.compiler.disable  # type: ignore[untyped-decorator]
            def backward(ctx: Any, *grads: Any) -> Any:
                """Gradients of the tensors that it was given."""
                wanted = ctx.needs_input_grad[1:]
                pairs = zip(ctx.saved_tensors, wanted, strict=True)
                given = [t.detach().requires_grad_(w) for t, w in pairs]
                found, done = _gradients(ctx.call, given, grads, log)
                known = [g for g in grads if g is not None]
                args = () if asked is None else asked(ctx.call, known, ctx.kept, wanted)
                read = [*known, *given, *ctx.kept] if asked is None else _tensors(args)
                note(backward, args, read, found, done)
                return None, *found

        self._function = Function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the op."""
        call = _Call(self._op, args, kwargs)
        return self._function.apply(call, *call.tensors())

    def _note(
        self, names: tuple[str, ...], args: Any, given: Any, result: Any, done: Counter[str]
    ) -> None:
        """Note the ops: the last has the tensors, those before it are not told apart.

        `done`: the operations of all, by precision, of which there is one: they stand at the first.
        """
        known = next(iter(done.items()), None)
        for name in names[:-1]:
            self._log.note_op(Op(name, "aten", (), {}, given[:1], []), known)
            known = None
        written = [t for t in leaves(result) if t is not None]
        self._log.note_op(Op(names[-1], "aten", args, {}, list(given), written), known)
