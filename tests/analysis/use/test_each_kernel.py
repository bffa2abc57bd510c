"""What is told of each single kernel, on traces whose answer is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from profharness.analysis.kernels.facts import Yardstick
from profharness.analysis.use.each_kernel import fills, of_each
from profharness.trace.columns.table import NULL
from profharness.trace.model import Counters, Trace
from tests.analysis.kernels.test_roofline import MEASURED, N, scene, with_ops
from tests.analysis.use.test_device_use import BYTES, FLOPS, PAIR, products

AGAINST = Yardstick((MEASURED,))
UNKNOWN = pytest.approx(np.nan, nan_ok=True)


def limiters(trace: Trace, **given: bool) -> list[str | None]:
    told = of_each(trace, AGAINST, **given)
    return [None if code == NULL else told.limiters[code] for code in told.limiter.tolist()]


def with_counters(trace: Trace) -> Trace:
    name = trace.strings.code("GRBM_COUNT")
    return replace(trace, counters=Counters.build(kernel=[0], name=name, value=1.0, source=0))


def test_a_product_of_one_kernel_has_all_of_its_work() -> None:
    told = of_each(products(0.75, 0.25), AGAINST)
    assert told.flops.tolist() == [FLOPS, FLOPS]
    assert told.moved.tolist() == [BYTES, BYTES]
    assert told.of_peak.tolist() == pytest.approx([75, 25], rel=1e-4)
    assert limiters(products(0.75, 0.25)) == ["compute", "inside_kernel"]


def test_work_of_several_kernels_stands_at_none_of_them() -> None:
    made = scene()
    split, beside = made.op("aten::mm", 0, 10), made.op("aten::mm", 10, 20)
    made.kernel(20, 50_020, name="gemm", op=split)
    made.kernel(50_100, 100_100, name="gemm", op=split)
    made.kernel(100_200, 100_300, name="transpose", op=beside)
    made.kernel(100_400, 166_000, name="gemm", op=beside)
    trace = with_ops(made, [PAIR, PAIR])
    told = of_each(trace, AGAINST)
    assert told.flops.tolist() == pytest.approx([np.nan, np.nan, np.nan, FLOPS], nan_ok=True)
    assert told.moved.tolist() == pytest.approx([np.nan, np.nan, np.nan, BYTES], nan_ok=True)
    assert np.isfinite(told.of_peak).tolist() == [False, False, False, True]
    # what holds the product back is known all the same
    assert limiters(trace)[0] == limiters(trace)[1] == "inside_kernel"


def test_what_only_moves_data_has_its_bytes() -> None:
    made = scene()
    once, twice = made.op("aten::relu", 0, 10), made.op("aten::relu", 10, 20)
    made.kernel(20, 10_020, name="relu", op=once)
    made.kernel(20_000, 20_500, name="relu", op=twice)
    made.kernel(21_000, 21_500, name="relu", op=twice)
    told = of_each(with_ops(made, [([[N, N]], ["float"])] * 2), AGAINST)
    assert told.moved.tolist() == pytest.approx([8 * N**2, np.nan, np.nan], nan_ok=True)
    assert told.flops.tolist() == pytest.approx([np.nan] * 3, nan_ok=True)
    assert [told.limiters[code] for code in told.limiter[:1]] == ["bandwidth"]


def test_fill_is_of_the_kernel_alone_and_at_most_all() -> None:
    made = scene()
    for at, workgroups in enumerate((26, 104, 1000)):
        made.kernel(10 * at, 10 * at + 5, workgroups=workgroups)
    made.kernel(40, 45, workgroups=NULL)
    trace = made.build()
    assert fills(trace).fill.tolist() == pytest.approx([25, 100, 100, np.nan], nan_ok=True)
    assert of_each(trace, AGAINST).fill.tolist() == [*fills(trace).fill.tolist()[:3], UNKNOWN]
    nameless = replace(trace, devices=(replace(trace.devices[0], name="", compute_units=None),))
    assert not np.isfinite(fills(nameless).fill).any()


def test_times_that_were_slowed_are_set_against_nothing() -> None:
    trace = products(0.75)
    slow = replace(trace, sources=(replace(trace.sources[0], pass_name="counters"),))
    for told in (of_each(slow, AGAINST, ["counters"]), of_each(with_counters(trace), AGAINST)):
        assert told.flops.tolist() == [FLOPS]
        assert told.of_peak.tolist() == [UNKNOWN]
        assert told.limiter.tolist() == [NULL]


def test_without_what_they_need_neither_limit_nor_share_is_told() -> None:
    trace = products(0.75)
    assert limiters(trace, limits=False) == [None]
    told = of_each(trace, None)
    assert (told.flops.tolist(), told.of_peak.tolist()) == ([FLOPS], [UNKNOWN])
    assert told.limiter.tolist() == [NULL]
