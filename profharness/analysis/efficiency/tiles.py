"""The tile that a kernel for matrix products computes at a time, by its name, and how much of the
tiles lies outside of a matrix (docs/metrics.md#tile-waste).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from profharness.trace.model import F64, I64

_NAMES = 1 << 14
_PATTERNS = tuple(
    re.compile(pattern)
    for pattern in (
        # Tensile, which rocBLAS and hipBLASLt are made of: MT<rows>x<columns>x<depth>
        r"Cijk_\w*?_MT(\d+)x(\d+)(?:x\d+)?(?![0-9x])",
        # cuBLAS: xmma kernels of Ampere and Hopper, and nvjet, which names its tile first
        r"xmma_gemm\w*?_tilesize(\d+)x(\d+)x\d+",
        r"^nvjet_(?:[a-z][a-z0-9]*_)+?(\d+)x(\d+)_",
        # CUTLASS 3 names the instruction, then the tile with its depth, then the cluster
        r"cutlass3x_\w*?gemm_\w*?_(\d+)x(\d+)x\d+_\d+x\d+x\d+_",
        # CUTLASS 2 and cuBLAS: gemm, words on types and fusions, <rows>x<columns>
        r"(?:cutlass|ampere|turing|volta|sm\d\d)_\w*?gemm(?:_[a-z]\w*?)??_(\d+)x(\d+)(?![0-9x])",
        # ck_tile: TileGemmShape<sequence<rows, columns, depth>, ...>
        r"TileGemmShape<(?:ck_tile::)?sequence<(\d+), ?(\d+), ?\d+>",
    )
)


@dataclass(frozen=True)
class Tile:
    """The part of a product that one workgroup computes, in elements."""

    rows: int
    columns: int


@lru_cache(_NAMES)
def tile_of(kernel: str) -> Tile | None:
    """The tile that a product's kernel names; None where the name has none."""
    for pattern in _PATTERNS:
        found = pattern.search(kernel)
        if found is not None and int(found[1]) and int(found[2]):
            return Tile(int(found[1]), int(found[2]))
    return None


def wasted_share(m: I64, n: I64, rows: I64, columns: I64) -> F64:
    """The share of the tiles' area that lies outside of m by n results.

    Libraries that store matrices by columns compute the transposed product, so that either side of
    the tile may lie along m: the arrangement that wastes less is taken, and the share is a lower
    bound.
    """
    straight = _rounded(m, rows) * _rounded(n, columns)
    turned = _rounded(m, columns) * _rounded(n, rows)
    area: F64 = np.minimum(straight, turned)
    wasted: F64 = 1.0 - m.astype(np.float64) * n / np.maximum(area, 1.0)
    return wasted


def _rounded(extent: I64, by: npt.NDArray[np.int64]) -> F64:
    rounded: F64 = (-(-extent // np.maximum(by, 1)) * by).astype(np.float64)
    return rounded
