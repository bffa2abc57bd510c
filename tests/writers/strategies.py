"""Random traces that are hard on a writer: touching, nested, crossing and zero-length spans;
several hosts, ranks and passes that share pids; calls that launch many records; names with any
characters.
"""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from profharness.trace.columns.table import NULL
from profharness.trace.model import (
    Api,
    Copies,
    Counters,
    Device,
    Kernels,
    Marks,
    Ops,
    Requests,
    Samples,
    Source,
    Stream,
    Strings,
    Trace,
)

BASE = 1_000_000_000_000
NAMES = ("gemm", "void k<float, 4>(int*)", "é∆ kernel", "", "add" * 60, "softmax")


@st.composite
def spans(draw: st.DrawFn, most: int = 12, reach: int = 20) -> tuple[np.ndarray, np.ndarray]:
    """Starts and durations on few distinct instants, so that ties of every kind occur."""
    rows = draw(st.lists(st.tuples(st.integers(0, reach), st.integers(0, reach)), max_size=most))
    start, dur = (np.asarray([row[i] for row in rows], np.int64) for i in range(2))
    return start + BASE, dur


@st.composite
def traces(draw: st.DrawFn, *, most: int = 12) -> Trace:
    """A trace of 1 to 4 sources with every table filled, or not."""
    strings = Strings(NAMES)
    count = draw(st.integers(1, 4))
    sources = tuple(
        Source(
            path=f"rank{i}.json",
            format="kineto",
            host=draw(st.sampled_from(("node0", "node1", ""))),
            rank=draw(st.sampled_from((None, 0, 1))),
            pid=draw(st.sampled_from((1, 7, None))),
            pass_name=draw(st.sampled_from(("", "bare", "torch"))),
        )
        for i in range(count)
    )
    devices = tuple(
        Device(str(i), draw(st.sampled_from(("node0", "node1", ""))), name="AMD Instinct MI210")
        for i in range(2)
    )
    streams = (Stream(0, "0"), Stream(0, "7"), Stream(1, "default"))
    codes = st.integers(-1, len(NAMES) - 1)

    def column(strategy: st.SearchStrategy[int], rows: int) -> np.ndarray:
        return np.asarray(draw(st.lists(strategy, min_size=rows, max_size=rows)), np.int64)

    def owned(rows: int) -> dict[str, object]:
        return {
            "source": column(st.integers(0, count - 1), rows),
            "pid": column(st.sampled_from((NULL, 1, 7)), rows),
        }

    start, dur = draw(spans(most))
    n = len(start)
    kernels = Kernels.build(
        n,
        start_ns=start,
        dur_ns=dur,
        name=column(codes, n),
        device=column(st.integers(-1, 1), n),
        stream=column(st.integers(-1, 2), n),
        correlation=column(st.integers(-1, 5), n),
        **owned(n),
        workgroup_count_x=column(st.sampled_from((-1, 1, 300)), n),
        workgroup_count_y=2,
        workgroup_count_z=1,
        workgroup_size_x=column(st.sampled_from((-1, 64, 1024)), n),
        workgroup_size_y=1,
        workgroup_size_z=1,
        vgpr=column(st.sampled_from((-1, 0, 128)), n),
        lds_bytes=column(st.sampled_from((-1, 0, 65536)), n),
        lds_dynamic_bytes=column(st.sampled_from((-1, 0, 4096)), n),
    )
    start, dur = draw(spans(most))
    n = len(start)
    copies = Copies.build(
        n,
        start_ns=start,
        dur_ns=dur,
        name=column(codes, n),
        kind=strings.code("h2d"),
        device=column(st.integers(-1, 1), n),
        stream=column(st.integers(-1, 2), n),
        bytes=column(st.sampled_from((-1, 0, 2**40)), n),
        correlation=column(st.integers(-1, 5), n),
        **owned(n),
    )
    start, dur = draw(spans(most))
    n = len(start)
    api = Api.build(
        n,
        start_ns=start,
        dur_ns=dur,
        name=column(codes, n),
        domain=strings.code("hip"),
        tid=column(st.sampled_from((1, 2, 7, NULL)), n),
        correlation=column(st.integers(-1, 5), n),
        **owned(n),
    )
    start, dur = draw(spans(most))
    n = len(start)
    ops = Ops.build(
        n,
        start_ns=start,
        dur_ns=dur,
        name=column(codes, n),
        tid=column(st.sampled_from((1, 2)), n),
        shapes=column(codes, n),
        external=column(st.integers(-1, 3), n),
        flops=column(st.sampled_from((0, 1)), n) * 1e12,
        **owned(n),
    )
    start, dur = draw(spans(most))
    n = len(start)
    kinds = [strings.code(kind) for kind in ("point", "trial", "range", "step")]
    marks = Marks.build(
        n,
        start_ns=start,
        dur_ns=dur,
        name=column(codes, n),
        kind=column(st.sampled_from(kinds), n),
        items=column(st.integers(-1, 64), n),
        tid=column(st.sampled_from((NULL, 1)), n),
        **owned(n),
    )
    start, dur = draw(spans(most))
    n = len(start)
    requests = Requests.build(
        n,
        intended_ns=start,
        sent_ns=start,
        done_ns=start + dur,
        ok=column(st.integers(0, 1), n),
        items=1,
        source=column(st.integers(0, count - 1), n),
    )
    start, dur = draw(spans(most))
    n = len(start)
    values = np.asarray(
        draw(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=n, max_size=n)),
        np.float64,
    )
    samples = Samples.build(
        n,
        at_ns=start,
        until_ns=start + dur,
        device=column(st.integers(-1, 1), n),
        metric=column(st.sampled_from([strings.code(m) for m in ("power_w", "memory_tree")]), n),
        value=values,
        source=column(st.integers(0, count - 1), n),
    )
    n = draw(st.integers(0, 3)) if len(kernels) else 0
    counters = Counters.build(
        n,
        kernel=column(st.integers(0, max(len(kernels) - 1, 0)), n),
        name=strings.code("SQ_WAVES"),
        value=np.arange(n) * 1.5,
        source=0,
    )
    return Trace(
        sources,
        strings,
        devices,
        streams,
        kernels,
        copies,
        api,
        ops,
        marks,
        samples,
        counters,
        requests,
    )
