"""Products whose tiles lie partly outside of their matrices (docs/metrics.md#tile-waste)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from profharness.analysis.efficiency.recorded import distinct_calls, texts
from profharness.analysis.efficiency.tiles import tile_of, wasted_share
from profharness.analysis.kernels.categories import function_name
from profharness.analysis.kernels.roofline import LONGEST_NAME
from profharness.analysis.measurement import Measurement
from profharness.findings import Finding, finding
from profharness.trace.columns.keys import coded, first_rows, pack
from profharness.trace.columns.table import NULL
from profharness.trace.model import F64, I64
from profharness.units import format_share

NOTABLE_WASTE = 0.03
"""Of kernel time: what less than this costs no change of extents gives back, since a library takes
a tile that fits badly also in order to keep all compute units at work.
"""


@dataclass(frozen=True, eq=False)
class TiledProducts:
    """Kernels (`rows`) of matrix products whose extents and tile are known: [m, k] by [k, n] in
    tiles of `tile_rows` by `tile_columns`, and the share of the tiles that lies outside.
    """

    rows: I64
    m: I64
    n: I64
    k: I64
    tile_rows: I64
    tile_columns: I64
    wasted: F64


def tiled_products(m: Measurement) -> TiledProducts | None:
    """The products of the windows; None where no kernel names its tile or no extents are known."""
    trace, works = m.trace, m.facts.operators
    if works is None:
        return None
    kernels = trace.kernels
    rows = np.flatnonzero(m.facts.multiplying & (kernels.op != NULL) & (m.kernel_ns > 0))
    owner = works.owner[kernels.op[rows]]
    rows, owner = rows[owner != NULL], owner[owner != NULL]
    codes, place = coded(kernels.name[rows])
    tiles = [tile_of(trace.strings[code]) for code in codes.tolist()]
    sides = np.array([(0, 0) if tile is None else (tile.rows, tile.columns) for tile in tiles])
    if not sides.any():
        return None
    first, which = distinct_calls(trace, owner)
    engine = m.facts.yardstick.operator_input.engine
    sizes = [engine.product_size(*texts(trace, row)) for row in first.tolist()]
    extents = np.array([(0, 0, 0) if size is None else (size.m, size.n, size.k) for size in sizes])
    side, extent = sides[place], extents[which]
    known = side.all(axis=1) & extent.all(axis=1)
    side, extent = side[known].astype(np.int64), extent[known].astype(np.int64)
    return TiledProducts(
        rows=rows[known],
        m=extent[:, 0],
        n=extent[:, 1],
        k=extent[:, 2],
        tile_rows=side[:, 0],
        tile_columns=side[:, 1],
        wasted=wasted_share(extent[:, 0], extent[:, 1], side[:, 0], side[:, 1]),
    )


def tile_waste(m: Measurement) -> Iterator[Finding]:
    """The time that products lose by parts of tiles outside of their matrices, where it is notable.

    Only where the tiles' operations, at the device's peak, take longer than the product's bytes at
    its bandwidth: a product that waits for memory loses nothing by a tile that is too large, and
    one that computes no more than the time beyond that which its bytes need.
    """
    whole = int(m.kernel_ns.sum())
    if not whole or not m.facts.timed:
        return
    tiled = tiled_products(m)
    if tiled is None:
        return
    rows, time = tiled.rows, m.kernel_ns[tiled.rows]
    moving = m.facts.rates.bandwidth_share[rows]
    computing = m.facts.rates.compute_share[rows] / (1.0 - tiled.wasted) > moving
    lost = np.where(computing, time * np.fmin(tiled.wasted, np.fmax(1.0 - moving, 0.0)), 0.0)
    if float(lost.sum()) < NOTABLE_WASTE * whole:
        return
    counted = time[computing]
    wasted = float(np.average(tiled.wasted[computing], weights=counted))
    products = int(counted.sum()) / whole
    columns = (tiled.m, tiled.n, tiled.k, tiled.tile_rows, tiled.tile_columns)
    first, place = first_rows(pack((*columns, m.trace.kernels.name[rows])))
    worst = int(first[int(np.argmax(np.bincount(place, weights=lost)))])
    name = function_name(m.trace.strings[int(m.trace.kernels.name[rows[worst]])])
    tile = f"{tiled.tile_rows[worst]}x{tiled.tile_columns[worst]}"
    extents = f"{tiled.m[worst]} x {tiled.n[worst]} x {tiled.k[worst]}"
    yield finding(
        "tile-waste",
        f"{format_share(wasted)} of the tiles that matrix products compute lies outside of their "
        f"matrices, weighted by time ({format_share(products)} of kernel time), which costs at "
        f"most {format_share(float(lost.sum()) / whole)} of kernel time; most in products of M x N "
        f"x K = {extents} with tiles of {tile} ({format_share(float(tiled.wasted[worst]))} "
        f"outside, {name[:LONGEST_NAME]})",
        wasted_share=wasted,
        products_share=products,
        kernel_time_share=float(lost.sum()) / whole,
        extents=extents,
        tile=tile,
    )
