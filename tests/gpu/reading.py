"""An example of each op that reads values on the host inside of itself, and how often it waits.

As a program, ``reading.py DEVICE`` writes for each example how often the CPU waits in one call, as
kernelcount has it on this device (``cuda`` or ``paper``): a JSON object by the names of `EXAMPLES`.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from kernelcount import KernelcountError, count

Example = tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]
"""A function and what makes its arguments."""


def vector() -> tuple[Any, ...]:
    """Numbers above 0, of which no two are the same."""
    return ((torch.randperm(64) + 1) / 64,)


def two() -> tuple[Any, ...]:
    return (*vector(), *vector())


def whole() -> tuple[Any, ...]:
    return (torch.arange(64) % 7,)


def matrix() -> tuple[Any, ...]:
    """Symmetric, with its eigenvalues well above 0."""
    a = torch.rand(8, 8)
    return (a @ a.T + 8 * torch.eye(8),)


def system() -> tuple[Any, ...]:
    return (*matrix(), torch.rand(8, 2))


def factored() -> tuple[Any, ...]:
    return (*torch.linalg.lu_factor(*matrix()), torch.rand(8, 2))


def reflected() -> tuple[Any, ...]:
    return (*torch.geqrf(*matrix()), torch.rand(8, 8))


def alphabet(requires_grad: bool = False) -> tuple[Any, ...]:
    """Log probabilities of 12 steps, a batch of 2 and 5 letters; targets of 4 letters."""
    return (
        torch.rand(12, 2, 5).log_softmax(-1).requires_grad_(requires_grad),
        torch.randint(1, 5, (2, 4)),
    )


def _ctc(spoken: Any, targets: Any) -> Any:
    return F.ctc_loss(spoken, targets, (12, 12), (4, 4))


def _ctc_and_back(spoken: Any, targets: Any) -> Any:
    return torch.autograd.grad(_ctc(spoken, targets), spoken)


def _left_aligned(x: Any, mask: Any) -> Any:
    return torch._nested_tensor_from_mask_left_aligned(x, mask)


EXAMPLES: dict[str, Example] = {
    "nonzero": (lambda x: x.nonzero(), vector),
    "masked_select": (lambda x: x.masked_select(x > 0.5), vector),
    "equal": (torch.equal, two),
    "equal, other shapes": (lambda x: torch.equal(x, x[1:]), vector),
    "allclose": (torch.allclose, two),
    "_nested_tensor_from_mask_left_aligned": (
        _left_aligned,
        lambda: (torch.rand(2, 3, 4), torch.ones(2, 3, dtype=torch.bool)),
    ),
    "_unique": (torch._unique, vector),
    "_unique2": (torch.unique, vector),
    "_unique2, inverse and counts": (
        lambda x: torch.unique(x, return_inverse=True, return_counts=True),
        vector,
    ),
    "unique_dim": (lambda x: torch.unique(x, dim=0), matrix),
    "unique_consecutive": (torch.unique_consecutive, vector),
    "unique_consecutive, rows": (lambda x: torch.unique_consecutive(x, dim=0), matrix),
    "unique_dim_consecutive": (lambda x: torch.ops.aten.unique_dim_consecutive(x, 0), matrix),
    "unique_dim, inverse": (lambda x: torch.unique(x, dim=0, return_inverse=True), matrix),
    "masked_fill": (lambda x: x.masked_fill(x > 0.5, x[0]), vector),
    "masked_fill, a number": (lambda x: x.masked_fill(x > 0.5, 0.0), vector),
    "index_fill": (lambda n: n.index_fill(0, n, n[0]), whole),
    "repeat_interleave": (torch.repeat_interleave, whole),
    "repeat_interleave, size given": (
        lambda n: torch.repeat_interleave(n, output_size=189),
        whole,
    ),
    "multinomial": (lambda x: torch.multinomial(x, 1), vector),
    "multinomial, several": (lambda x: torch.multinomial(x, 3), vector),
    "multinomial, replaced": (lambda x: torch.multinomial(x, 3, True), vector),
    "histc": (lambda x: x.histc(10), vector),
    "histc, ends given": (lambda x: x.histc(10, 0, 1), vector),
    "bincount": (torch.bincount, whole),
    "bincount, bytes": (torch.bincount, lambda: (whole()[0].to(torch.uint8),)),
    "searchsorted": (torch.searchsorted, two),
    "searchsorted, sorter": (lambda x: torch.searchsorted(x, x, sorter=x.argsort()), vector),
    "normal": (torch.normal, two),
    "normal, a number": (lambda x: torch.normal(x, 1.0), vector),
    "linspace": (lambda x: torch.linspace(x[0], x[1], 5), vector),
    "linspace, one a number": (lambda x: torch.linspace(x[0], 5.0, 5), vector),
    "logspace": (lambda x: torch.logspace(x[0], x[1], 5), vector),
    "isin": (torch.isin, two),
    "isin, few": (lambda x: torch.isin(x, x[:1]), vector),
    "mode": (lambda x: x.mode(), whole),
    "embedding_renorm_": (
        lambda i, w: F.embedding(i, w, max_norm=1.0),
        lambda: (*whole(), torch.rand(7, 4)),
    ),
    "segment_reduce": (
        lambda x, n: torch.segment_reduce(x, "sum", lengths=n),
        lambda: (*vector(), torch.tensor([16, 48])),
    ),
    "fake_quantize_per_channel_affine_cachemask": (
        lambda x, s, z: torch.fake_quantize_per_channel_affine(x, s, z, 0, 0, 255),
        lambda: (*matrix(), torch.ones(8), torch.zeros(8, dtype=torch.int32)),
    ),
    "_ctc_loss": (_ctc, alphabet),
    "_ctc_loss_backward": (_ctc_and_back, lambda: alphabet(requires_grad=True)),
    "cholesky": (torch.cholesky, matrix),
    "cholesky_inverse": (torch.cholesky_inverse, matrix),
    "cholesky_solve": (lambda a, b: torch.cholesky_solve(b, a), system),
    "_cholesky_solve_helper": (
        lambda a, b: torch.ops.aten._cholesky_solve_helper(b, a, False),
        system,
    ),
    "geqrf": (torch.geqrf, matrix),
    "ormqr": (torch.ormqr, reflected),
    "linalg_inv_ex": (torch.linalg.inv, matrix),
    "linalg_inv_ex, unchecked": (torch.linalg.inv_ex, matrix),
    "linalg_cholesky_ex": (torch.linalg.cholesky, matrix),
    "linalg_cholesky_ex, unchecked": (torch.linalg.cholesky_ex, matrix),
    "_linalg_solve_ex": (torch.linalg.solve, system),
    "_linalg_solve_ex, unchecked": (torch.linalg.solve_ex, system),
    "_linalg_det": (torch.linalg.det, matrix),
    "_linalg_slogdet": (torch.linalg.slogdet, matrix),
    "_linalg_eigh": (torch.linalg.eigh, matrix),
    "_linalg_eigh, values": (torch.linalg.eigvalsh, matrix),
    "_linalg_svd": (torch.linalg.svd, matrix),
    "_linalg_svd, values": (torch.linalg.svdvals, matrix),
    "linalg_eig": (torch.linalg.eig, matrix),
    "linalg_householder_product": (lambda a, tau, _: torch.linalg.householder_product(a, tau),
                                   reflected),
    "linalg_ldl_factor_ex": (torch.linalg.ldl_factor, matrix),
    "linalg_lstsq": (torch.linalg.lstsq, system),
    "linalg_lu": (torch.linalg.lu, matrix),
    "linalg_lu_factor_ex": (torch.linalg.lu_factor, matrix),
    "linalg_lu_solve": (torch.linalg.lu_solve, factored),
    "linalg_matrix_exp": (torch.linalg.matrix_exp, matrix),
    "linalg_pinv": (torch.linalg.pinv, matrix),
    "linalg_qr": (torch.linalg.qr, matrix),
    "linalg_vector_norm": (torch.linalg.vector_norm, vector),
    "linalg_cross": (lambda x: torch.linalg.cross(x, x), lambda: (torch.rand(4, 3),)),
    "linalg_solve_triangular": (
        lambda a, b: torch.linalg.solve_triangular(a, b, upper=True),
        system,
    ),
}  # fmt: skip
"""By the name of the op as it is dispatched; behind a comma, how it is called."""

WITHOUT_EXAMPLE = {
    "_cudnn_ctc_loss": "cuDNN's alone, which a torch without it does not dispatch",
    "quantize_per_channel": "paper does not count quantised tensors",
    "quantize_per_tensor": "paper does not count quantised tensors",
    "quantize_per_tensor_dynamic": "paper does not count quantised tensors",
    "_lu_with_info": "is dispatched as linalg_lu_factor_ex",
    "lu_solve": "is dispatched as linalg_lu_solve",
    "linalg_diagonal": "is dispatched as diagonal",
    "linalg_vecdot": "is dispatched as what it is made of",
    "_linalg_check_errors": "stands in each example of linalg that is not unchecked",
}


def waited(name: str, device: str) -> dict[str, Any]:
    """How often the CPU waits in a call of an example, and for what; or why that is not known."""
    function, make = EXAMPLES[name]
    torch.manual_seed(0)
    try:
        (entry,) = count(function, *make(), device=device).to_dict()["variants"]
    except (KernelcountError, RuntimeError, NotImplementedError) as error:
        why = str(error).partition("\n")[0]
        return {"waits": None, "at_least": False, "kinds": [], "why": why}
    syncs = entry["syncs"]
    return {
        "waits": None if syncs is None else len(syncs),
        "at_least": bool(entry["syncs_at_least"]),
        "kinds": sorted({sync["kind"] for sync in syncs or ()}),
        "why": entry["reason"],
    }


def main(device: str) -> None:
    """Write what all examples come to on this device."""
    warnings.simplefilter("ignore")  # torch's own, on what is old or new
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever libraries print
    with out:
        json.dump({name: waited(name, device) for name in EXAMPLES}, out)


if __name__ == "__main__":
    main(sys.argv[1])
