"""The casts of ``torch.autocast("cuda")`` in eager code.

torch makes them under a dispatch key that only a CUDA tensor has. The tables are those of
ATen/autocast_mode.h, where the policies are explained too; here they are applied to the stand-in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from kernelcount.paper import adapter
from kernelcount.paper.places import is_on

Policy = Callable[[Any, tuple[Any, ...], dict[str, Any]], tuple[tuple[Any, ...], dict[str, Any]]]

LOWER = """_convolution.deprecated _convolution conv1d conv2d conv3d conv_tbc conv_transpose1d
conv_transpose2d.input conv_transpose3d.input convolution prelu addmm addmv addr matmul einsum mm mv
linalg_vecdot linear addbmm baddbmm bmm chain_matmul linalg_multi_dot _thnn_fused_lstm_cell
_thnn_fused_gru_cell lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell
_scaled_dot_product_flash_attention scaled_dot_product_attention"""

FLOAT32 = """acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan
pow.Tensor_Scalar pow.Tensor_Tensor pow.Scalar softplus layer_norm native_layer_norm rms_norm
group_norm frobenius_norm.dim nuclear_norm nuclear_norm.dim cosine_similarity poisson_nll_loss
cosine_embedding_loss nll_loss nll_loss2d hinge_embedding_loss kl_div l1_loss smooth_l1_loss
huber_loss mse_loss margin_ranking_loss multilabel_margin_loss soft_margin_loss
triplet_margin_loss multi_margin_loss binary_cross_entropy_with_logits dist pdist cdist renorm
logsumexp upsample_nearest1d _upsample_nearest_exact1d upsample_nearest2d _upsample_nearest_exact2d
upsample_nearest3d _upsample_nearest_exact3d upsample_linear1d upsample_bilinear2d
_upsample_bilinear2d_aa upsample_trilinear3d upsample_bicubic2d _upsample_bicubic2d_aa"""

FLOAT32_BY_DTYPE = """prod prod.dim_int softmax.int log_softmax.int cumprod cumsum
linalg_vector_norm linalg_matrix_norm linalg_matrix_norm.str_ord sum sum.dim_IntList"""

WIDEST = """addcdiv addcmul atan2 bilinear cross dot vdot grid_sampler index_put tensordot
scatter_add"""

# They turn into an overload with a dtype, or raise: too few to be worth a policy of their own.
OPEN = "norm.Scalar norm.ScalarOpt_dim norm.names_ScalarOpt_dim binary_cross_entropy"


def tables() -> dict[str, Policy | None]:
    """The policy of each overload that autocast acts on; None where it is not followed here."""
    rows: dict[str, Policy | None] = dict.fromkeys(OPEN.split())
    casts = Casts()
    for names, policy in (
        (LOWER, casts.lower),
        (FLOAT32, casts.float32),
        (FLOAT32_BY_DTYPE, casts.float32_by_dtype),
        (WIDEST, casts.widest),
    ):
        rows |= dict.fromkeys(names.split(), policy)
    return rows


class Casts:
    """The policies. A weight that was cast once is not cast again before autocast is left."""

    def __init__(self) -> None:
        self.kept: dict[int, tuple[Any, Any]] = {}

    def lower(self, _: Any, args: Any, kwargs: Any) -> Any:
        """To the dtype that autocast was entered with."""
        import torch

        return self._all(args, kwargs, torch.get_autocast_dtype("cuda"))

    def float32(self, _: Any, args: Any, kwargs: Any) -> Any:
        """To float32."""
        import torch

        return self._all(args, kwargs, torch.float32)

    def float32_by_dtype(self, op: Any, args: Any, kwargs: Any) -> Any:
        """By the op's own argument, which says in what dtype it is to work."""
        import torch

        place = [a.name for a in adapter.parameters_of(op)].index("dtype")
        given = kwargs.get("dtype") is not None or (len(args) > place and args[place] is not None)
        if given or not args or not _is_eligible(args[0]):
            return args, kwargs
        if len(args) > place:
            return (*args[:place], torch.float32, *args[place + 1 :]), kwargs
        return args, {**kwargs, "dtype": torch.float32}

    def widest(self, _: Any, args: Any, kwargs: Any) -> Any:
        """To float32 where one of the arguments is that, else to the lower dtype."""
        import torch

        wide = any(_is_eligible(a) and a.dtype == torch.float32 for a in args)
        to = torch.float32 if wide else torch.get_autocast_dtype("cuda")
        return self._all(args, kwargs, to)

    def _all(self, args: Any, kwargs: Any, dtype: Any) -> Any:
        cast = {k: self._cast(v, dtype) for k, v in kwargs.items()}
        return tuple(self._cast(a, dtype) for a in args), cast

    def _cast(self, value: Any, dtype: Any) -> Any:
        import torch

        if isinstance(value, list | tuple):
            return type(value)(self._cast(v, dtype) for v in value)
        if not _is_eligible(value) or value.dtype == dtype:
            return value
        keeps = (
            torch.is_autocast_cache_enabled()
            and dtype == torch.get_autocast_dtype("cuda")
            and value.dtype == torch.float32
            and value.requires_grad
            and value.is_leaf
            and not value._is_view()
        )
        if keeps and id(value) in self.kept:
            return self.kept[id(value)][1]
        made = torch.ops.aten._to_copy.default(value, dtype=dtype)
        if keeps:
            self.kept[id(value)] = (value, made)
        return made


def _is_eligible(value: Any) -> bool:
    """A floating-point tensor of the GPU's, but for float64."""
    import torch

    return is_on(value) and value.is_floating_point() and value.dtype != torch.float64


@contextmanager
def followed(notice: Callable[[str], None]) -> Iterator[None]:
    """Make the casts. `notice` is told of an op that autocast acts on and this does not follow."""
    import torch

    with ExitStack() as stack:
        casts: set[Casts] = set()
        library = torch.library.Library("aten", "IMPL")
        stack.callback(adapter.unregister, library)
        for name, policy in tables().items():
            op = adapter.overload_of(name)
            if op is None or not adapter.is_cast(op):  # the tables grow from version to version
                continue
            if policy is not None:
                casts.add(policy.__self__)  # type: ignore[attr-defined]
            adapter.under_autocast(library, name, _cast_first(op, policy, notice))

        def left() -> None:
            for each in casts:
                each.kept.clear()

        stack.enter_context(adapter.autocast_on_stand_in(left))
        yield


def _cast_first(op: Any, policy: Policy | None, notice: Callable[[str], None]) -> Any:
    def run(*args: Any, **kwargs: Any) -> Any:
        if policy is None:
            notice(f"{op} under autocast")
        with adapter.without_autocast():
            if policy is not None:
                args, kwargs = policy(op, args, kwargs)
            return op(*args, **kwargs)

    return run
