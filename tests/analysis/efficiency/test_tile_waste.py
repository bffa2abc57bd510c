"""Tile waste of the products of a trace."""

from __future__ import annotations

import json

import numpy as np
import pytest

from profharness.analysis.efficiency.tile_waste import tiled_products
from profharness.analysis.operators.engine import OperatorInput, own_engine
from profharness.analysis.operators.products import ProductSize
from profharness.analysis.operators.table import TableText
from tests.analysis.efficiency.device_work import A100, DeviceWork, found_in, measured

TILE = "sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize256x128x32_stage3_kernel"
PEAK, BANDWIDTH = 312e12, 2.039e12  # fp16 and memory of an A100 80 GB, by its data sheet


def products(*extents, of_peak=0.5, device=A100, name=TILE, kind="c10::Half", operator="aten::mm"):
    """One product of [m, k] and [k, n] after the other; the tiles' operations reach a share of the
    peak.
    """
    made = DeviceWork(device)
    for m, n, k in extents:
        op = made.op(operator, (kind, [m, k]), (kind, [k, n]))
        area = -(-m // 256) * 256 * -(-n // 128) * 128
        made.kernel(name, round(2 * area * k / PEAK / of_peak * 1e9), op)
    return made.build()


def test_products_that_do_not_fill_their_tiles():
    trace = products((4096, 4096, 4096), (257, 129, 65536))
    times = trace.kernels.dur_ns
    (found,) = found_in(trace, "tile-waste")
    outside = 1 - 257 * 129 / (384 * 256)
    assert found.severity == "info"
    assert found.figures["wasted_share"] == pytest.approx(outside * times[1] / times.sum())
    moving = 2 * (257 * 65536 + 65536 * 129 + 257 * 129) / BANDWIDTH * 1e9 / times[1]
    assert found.figures["kernel_time_share"] == pytest.approx(
        min(outside, 1 - moving) * times[1] / times.sum(), rel=1e-3
    )
    assert found.figures["products_share"] == 1.0
    assert (found.figures["extents"], found.figures["tile"]) == ("257 x 129 x 65536", "256x128")
    assert "257 x 129 x 65536 with tiles of 256x128 (66.3 % outside" in found.message


def test_products_by_a_users_formula_count_as_ours_do():
    text = '[[formula]]\nmatch = "my::product"\nkind = "matmul"\na = 0\nb = 1\n'
    given = OperatorInput((TableText("mine", text),))
    theirs = products((257, 129, 65536), operator="my::product")
    ours = found_in(products((257, 129, 65536)), "tile-waste")
    assert found_in(theirs, "tile-waste", given) == ours != []
    assert found_in(theirs, "tile-waste") == []


@pytest.mark.parametrize(
    "trace",
    [
        products((4096, 4096, 4096)),
        products((257, 129, 65536), name="gemm_without_a_tile"),
        products((1, 8192, 8192), of_peak=0.1),
        products((4096, 4096, 4096), (257, 129, 8192)),
    ],
    ids=["whole tiles", "no tile", "waits for its weights", "little of the time"],
)
def test_products_that_lose_nothing_are_no_finding(trace):
    assert found_in(trace, "tile-waste") == []


def test_the_extents_that_a_library_is_asked_for():
    def size(name, shapes, types=("float",) * 5):
        listed = ", ".join(f'"{kind}"' for kind in types[: shapes.count("[") - 1])
        return own_engine().product_size(name, shapes, f"[{listed}]")

    assert size("aten::mm", "[[7, 32], [32, 9]]") == ProductSize(1, 7, 9, 32)
    assert size("aten::bmm", "[[4, 7, 32], [4, 32, 9]]") == ProductSize(4, 7, 9, 32)
    assert size("aten::addmm", "[[9], [7, 32], [32, 9]]") == ProductSize(1, 7, 9, 32)
    assert size("aten::linear", "[[4, 7, 32], [64, 32], [64]]") == ProductSize(1, 28, 64, 32)
    assert size("aten::mm", "[[3, 4], [5, 6]]") is None
    assert size("aten::relu", "[[3, 4]]") is None
    assert own_engine().product_size("aten::mm", "", "") is None


@pytest.mark.parametrize(
    ("name", "shapes", "types"),
    [
        ("aten::_scaled_mm", [[7, 32], [32, 9], [], []], ["c10::Float4_e2m1fn_x2"] * 2),
        ("aiter::gemm_a4w4_asm", [[7, 32], [9, 32]], ["unsigned char"] * 2),
    ],
    ids=["by the type", "by the entry"],
)
def test_values_that_share_a_byte_count_singly(name, shapes, types):
    texts = (json.dumps(shapes), json.dumps(types + ["float"] * (len(shapes) - 2)))
    size = own_engine().product_size(name, *texts)
    assert size == ProductSize(1, 7, 9, 64)
    assert own_engine().work(name, *texts).flops == 2 * size.m * size.n * size.k


def test_extents_and_tiles_stand_by_kernel():
    trace = products((257, 129, 65536), (512, 128, 65536))
    tiled = tiled_products(measured(trace))
    assert tiled is not None
    assert tiled.rows.tolist() == [0, 1]
    assert np.stack((tiled.m, tiled.n, tiled.k)).T.tolist() == [
        [257, 129, 65536],
        [512, 128, 65536],
    ]
    assert np.stack((tiled.tile_rows, tiled.tile_columns)).T.tolist() == [[256, 128]] * 2
    assert tiled.wasted.tolist() == [pytest.approx(1 - 257 * 129 / (384 * 256)), 0.0]


def test_without_operators_nothing_is_known():
    made = DeviceWork()
    made.kernel(TILE, 1000)
    assert tiled_products(measured(made.build())) is None
