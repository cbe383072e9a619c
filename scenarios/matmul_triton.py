"""c = a @ b in Triton: each program makes a tile of c; how large a tile is decides the speed."""

import torch
from triton_if_there import tl, triton


@triton.jit
def matmul_kernel(a, b, c, m, n, k, TILE: tl.constexpr, DEPTH: tl.constexpr):
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    columns = tl.program_id(1) * TILE + tl.arange(0, TILE)
    depth = tl.arange(0, DEPTH)
    total = tl.zeros((TILE, TILE), dtype=tl.float32)
    for start in range(0, k, DEPTH):
        steps = start + depth
        tile_a = tl.load(
            a + rows[:, None] * k + steps[None, :],
            mask=(rows[:, None] < m) & (steps[None, :] < k),
            other=0.0,
        )
        tile_b = tl.load(
            b + steps[:, None] * n + columns[None, :],
            mask=(steps[:, None] < k) & (columns[None, :] < n),
            other=0.0,
        )
        # Without tensor cores, as torch multiplies float32 where nobody allows TF32.
        total = tl.dot(tile_a, tile_b, total, input_precision="ieee")
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c + rows[:, None] * n + columns[None, :], total, mask=inside)


def _matmul(a: torch.Tensor, b: torch.Tensor, tile: int) -> torch.Tensor:
    if a.dim() != 2 or b.dim() != 2 or a.shape[1] != b.shape[0]:
        raise ValueError("matmul: an m x k and a k x n matrix")
    if not all(x.is_contiguous() and x.dtype == torch.float32 for x in (a, b)):
        raise ValueError("matmul: contiguous float32 matrices only")
    (m, k), n = a.shape, b.shape[1]
    if max(m * k, k * n, m * n) >= 2**31:
        raise ValueError("matmul: a matrix of 2^31 elements or more")
    c = a.new_empty(m, n)
    grid = (triton.cdiv(m, tile), triton.cdiv(n, tile))
    matmul_kernel[grid](a, b, c, m, n, k, TILE=tile, DEPTH=16)
    return c


def small_tiles(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return _matmul(a, b, 16)


def large_tiles(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return _matmul(a, b, 64)
