"""The use of the devices of several files: exactly that of all their records together."""

from __future__ import annotations

import pickle
from dataclasses import replace

import msgspec
import pytest

from profharness import readers
from profharness.analysis.kernels.facts import KernelFacts, Yardstick
from profharness.analysis.parts import combine, part
from profharness.analysis.use.device_use import (
    MOST_SHAPES,
    NO_KERNELS,
    NO_OPERATORS,
    NO_SHAPES,
    NO_WORK,
    UseSums,
    device_use,
    files_use,
    use_sums,
)
from profharness.analysis.use.records import FilesUse, UseRow
from profharness.trace.columns.table import NULL
from profharness.trace.merge import merge
from profharness.trace.model import Kernels, Trace
from tests.analysis.kernels.test_roofline import MEASURED, N, mixed, scene
from tests.analysis.use.test_device_use import products
from tests.conftest import shared_path

KINETO = shared_path("fixtures/kineto")
YARDSTICK = Yardstick((MEASURED,))


def sums_of(trace: Trace) -> UseSums | None:
    return use_sums(KernelFacts(trace, YARDSTICK))


def joined(*traces: Trace) -> FilesUse:
    files = [(f"r{rank}.json", sums_of(trace)) for rank, trace in enumerate(traces)]
    use = files_use(files)
    assert use is not None
    return use


def assert_same_rows(found: tuple[UseRow, ...], expected: tuple[UseRow, ...]) -> None:
    """All that `UseRow` holds; sums of parts may differ from those of the whole in the last digit
    of a float.
    """
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        for name in UseRow.__struct_fields__:
            value = getattr(other, name)
            same = pytest.approx(value, rel=1e-12) if isinstance(value, float) else value
            assert getattr(one, name) == same, (other.name, name)


def assert_same(found: FilesUse, traces: list[Trace]) -> None:
    whole = device_use(KernelFacts(merge(traces), YARDSTICK))
    assert whole is not None
    for kind in ("operators", "shapes", "kernels"):
        assert_same_rows(getattr(found, kind), getattr(whole, kind))
    for name in ("device_ns", "outside_ns", "roofs", "bandwidth", "known", "needs"):
        assert getattr(found, name) == getattr(whole, name), name


def test_times_calls_and_work_of_all_ranks_are_summed() -> None:
    traces = [products(0.8, 0.4), products(0.2), mixed()]
    use = joined(*traces)
    assert_same(use, traces)
    (row,) = [row for row in use.operators if row.name == "aten::mm"]
    assert (row.calls, row.files) == (5, 3)
    alone = [one.device_ns for trace in traces for one in joined(trace).operators[:1]]
    assert (row.low_ns, row.high_ns, row.device_ns) == (min(alone), max(alone), sum(alone))
    assert use.unknown == ()


def test_a_rank_that_never_called_an_operator_has_no_time_of_it() -> None:
    use = joined(products(0.5), mixed())
    (row,) = [row for row in use.operators if row.name == "aten::copy_"]
    assert (row.low_ns, row.high_ns, row.files) == (0, row.device_ns, 1)


def test_files_without_known_work_are_named_with_what_they_need() -> None:
    trace = products(0.5)
    without_shapes = replace(trace, ops=trace.ops.with_columns(shapes=NULL))
    kernels = trace.kernels.with_columns(op=NULL)
    bare = replace(trace, ops=type(trace.ops).empty(), kernels=kernels)
    empty = replace(trace, kernels=Kernels.empty())
    use = joined(trace, without_shapes, without_shapes, bare, empty)
    assert [(one.needs, one.files, one.first) for one in use.unknown] == [
        (NO_SHAPES, 2, "r1.json"),
        (NO_OPERATORS, 1, "r3.json"),
        (NO_WORK, 1, "r4.json"),
    ]
    assert use.needs == ""
    (row,) = use.operators
    # the file without operators does not count as one whose operators took no time
    assert (row.low_ns, row.files) == (trace.kernels.dur_ns[0], 3)
    assert joined(without_shapes, bare).needs == f"{NO_SHAPES}; {NO_OPERATORS}"
    assert joined(without_shapes, bare).unknown == ()
    assert files_use([("a", sums_of(empty)), ("b", None)]) is None


def test_files_of_copies_alone_say_so() -> None:
    made = scene()
    made.copy(0, 100, made.call("hipMemcpyAsync", 0, 10))
    use = joined(made.build(), made.build())
    assert (use.needs, use.device_ns, use.operators) == (NO_KERNELS, 200, ())


def test_inputs_are_told_apart_over_all_ranks_while_they_are_few() -> None:
    def ranked(first: int, count: int) -> Trace:
        trace = products(*[0.5] * count)
        codes = [
            trace.strings.code(f"[[{N + first + at}, {N}], [{N}, {N}]]") for at in range(count)
        ]
        return replace(trace, ops=trace.ops.with_columns(shapes=codes))

    half = MOST_SHAPES // 2
    few = [ranked(0, half), ranked(half, half)]
    assert_same(joined(*few), few)
    assert len(joined(*few).shapes) == MOST_SHAPES
    assert joined(ranked(0, half), ranked(half, half + 1)).shapes == ()
    assert joined(ranked(0, MOST_SHAPES + 1), ranked(0, 1)).shapes == ()


def test_fill_is_the_mean_by_time_over_all_ranks() -> None:
    traces = [products(0.5), products(0.25)]
    half_full = traces[1].kernels.with_columns(workgroups=52)
    (row,) = joined(traces[0], replace(traces[1], kernels=half_full)).kernels
    long, short = (int(trace.kernels.dur_ns[0]) for trace in reversed(traces))
    assert row.fill == pytest.approx((short * 1.0 + long * 0.5) / (short + long))
    unknown = traces[1].kernels.with_columns(workgroups=NULL)
    (row,) = joined(traces[0], replace(traces[1], kernels=unknown)).kernels
    assert row.fill is None


def test_a_part_tells_the_use_only_where_it_is_asked_for() -> None:
    traces = {"a/r0.json": products(0.5), "a/r1.json": products(0.25)}
    plain = [part(trace, name, (), YARDSTICK) for name, trace in traces.items()]
    asked = [part(trace, name, (), YARDSTICK, with_use=True) for name, trace in traces.items()]
    assert combine(plain, "both").use is None
    use = combine(pickle.loads(pickle.dumps(asked)), "both").use
    assert use == joined(*traces.values())
    assert combine(asked[:1], "one").use == joined(traces["a/r0.json"])
    told = msgspec.structs.replace(combine(asked, "both"), use=None)
    assert told == combine(plain, "both")


@pytest.mark.parametrize("names", [("h100_bert_small",), ("mi210_gpu_only",)])
def test_recorded_files_add_up(names, shared) -> None:
    traces = [readers.read(KINETO / f"{name}.json.gz") for name in names for _ in range(2)]
    assert_same(joined(*traces), traces)
