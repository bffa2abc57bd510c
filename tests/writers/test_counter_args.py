"""Counters as launch arguments: each kernel gets its own values and no others, whatever the others
have, and one kernel with thousands of counters costs the others nothing.
"""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import GpuRenderStageEvent

from profharness.trace.model import Counters, Strings
from profharness.writers.counter_args import CounterArgs
from profharness.writers.protobuf.proto_columns import Same, encode
from tests.steps import calls_of

Row = tuple[int, str, float]
NAMES = ("GRBM_COUNT", "SQ_WAVES", "TCC_HIT")


def args_of(rows: list[Row]) -> CounterArgs:
    strings = Strings()
    table = Counters.build(
        len(rows),
        kernel=[kernel for kernel, _, _ in rows],
        name=strings.codes([name for _, name, _ in rows]),
        value=[value for _, _, value in rows],
        source=0,
    )
    return CounterArgs.of(table, strings)


def decoded(args: CounterArgs, rows: list[int]) -> list[list[tuple[str, float]]]:
    """The arguments of kernels, by Perfetto's own classes; each is a message of its own."""
    encoded = encode((Same(b""), *args.fields(np.asarray(rows), 11)), len(rows))
    ends = np.cumsum(encoded.sizes).tolist()
    launches = [
        GpuRenderStageEvent.ComputeKernelLaunch.FromString(encoded.data[start:end].tobytes())
        for start, end in zip([0, *ends[:-1]], ends, strict=True)
    ]
    return [[(args.names[a.name_iid - 11], a.double_value) for a in one.args] for one in launches]


@given(
    st.lists(st.tuples(st.integers(-1, 6), st.sampled_from(NAMES), st.floats(width=32))),
    st.sets(st.integers(0, 8), min_size=1),
)
def test_each_kernel_has_its_last_value_of_each_counter(rows: list[Row], wanted: set[int]) -> None:
    last = {
        (kernel, name): value
        for kernel, name, value in rows
        if kernel >= 0 and math.isfinite(value)
    }
    kernels = sorted(wanted)
    assert [sorted(one) for one in decoded(args_of(rows), kernels)] == [
        [(name, last[kernel, name]) for name in NAMES if (kernel, name) in last]
        for kernel in kernels
    ]


def test_a_kernel_of_many_counters_makes_the_others_no_dearer() -> None:
    wide = [(7, f"C{number:05}", 1.0) for number in range(10_000)]
    alone, beside = (
        args_of(wide[:1]),
        args_of([*((kernel, "X", 2.0) for kernel in range(7)), *wide]),
    )
    assert alone.rows_at_once(1 << 14) == 1 << 14
    assert beside.rows_at_once(1 << 14) * 10_000 * 18 <= 64 << 20  # bytes of their room together
    found = decoded(beside, list(range(8)))
    assert found[:7] == [[("X", 2.0)]] * 7
    assert found[7] == [(f"C{number:05}", 1.0) for number in range(10_000)]
    few = calls_of(lambda: args_of(wide[:1]).fields(np.arange(8), 11))
    assert calls_of(lambda: beside.fields(np.arange(8), 11)) < 10 * few + 200  # no step for each
