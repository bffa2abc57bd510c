"""Small made-up traces, drawn by hypothesis: all references between records are valid."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from profharness.trace.columns.table import NULL
from profharness.trace.model import (
    Api,
    Counters,
    Device,
    HostSamples,
    Kernels,
    Marks,
    Ops,
    Samples,
    Source,
    Stream,
    Strings,
    Trace,
)

NAMES = ("gemm", "conv", "relu", "hipLaunchKernel", "point", "trial", "b1", "b4")
times = st.integers(0, 10_000)


def column(draw: Any, elements: st.SearchStrategy[int], rows: int) -> np.ndarray:
    return np.array(draw(st.lists(elements, min_size=rows, max_size=rows)), np.int64)


@st.composite
def traces(draw: Any, max_rows: int = 12) -> Trace:
    """Sources, devices (some with identity), streams, and all kinds of rows that refer to them."""
    names = draw(st.permutations(NAMES))
    strings = Strings(names)
    sources = tuple(
        Source(
            f"f{i}",
            draw(st.sampled_from(("kineto", "rocprofv3"))),
            pid=draw(st.sampled_from((None, 7, 8))),
        )
        for i in range(draw(st.integers(1, 3)))
    )
    devices = tuple(
        Device(
            str(i),
            host=draw(st.sampled_from(("a", "b"))),
            identity=draw(st.sampled_from(("", "pci1", "pci2"))),
        )
        for i in range(draw(st.integers(1, 3)))
    )
    streams = tuple(
        Stream(
            draw(st.integers(0, len(devices) - 1)),
            str(draw(st.integers(0, 2))),
            draw(st.sampled_from((NULL, 7))),
        )
        for _ in range(draw(st.integers(1, 3)))
    )
    in_sources = st.integers(0, len(sources) - 1)
    codes = st.integers(NULL, len(names) - 1)

    def rows() -> int:
        return int(draw(st.integers(0, max_rows)))

    def common(count: int) -> dict[str, np.ndarray]:
        return {
            "start_ns": column(draw, times, count),
            "dur_ns": column(draw, st.integers(0, 500), count),
            "name": column(draw, codes, count),
            "source": column(draw, in_sources, count),
        }

    n_ops, n_kernels, n_api, n_marks, n_samples = rows(), rows(), rows(), rows(), rows()
    n_counters, n_host = rows() if n_kernels else 0, rows()
    return Trace(
        sources,
        strings,
        devices,
        streams,
        ops=Ops.build(n_ops, **common(n_ops), point=column(draw, codes, n_ops)),
        kernels=Kernels.build(
            n_kernels,
            **common(n_kernels),
            device=column(draw, st.integers(NULL, len(devices) - 1), n_kernels),
            stream=column(draw, st.integers(NULL, len(streams) - 1), n_kernels),
            op=column(draw, st.integers(NULL, n_ops - 1), n_kernels),
            point=column(draw, codes, n_kernels),
            correlation=column(draw, st.integers(NULL, 5), n_kernels),
        ),
        api=Api.build(
            n_api, **common(n_api), correlation=column(draw, st.integers(NULL, 5), n_api)
        ),
        marks=Marks.build(
            n_marks,
            **common(n_marks),
            kind=column(draw, codes, n_marks),
            point=column(draw, codes, n_marks),
        ),
        samples=Samples.build(
            n_samples,
            at_ns=column(draw, times, n_samples),
            until_ns=0,
            value=column(draw, times, n_samples),
            device=column(draw, st.integers(NULL, len(devices) - 1), n_samples),
            metric=column(draw, codes, n_samples),
            source=column(draw, in_sources, n_samples),
        ),
        counters=Counters.build(
            n_counters,
            kernel=column(draw, st.integers(NULL, n_kernels - 1), n_counters),
            name=column(draw, codes, n_counters),
            value=1.0,
            source=column(draw, in_sources, n_counters),
        ),
        host_samples=HostSamples.build(
            n_host,
            at_ns=column(draw, times, n_host),
            stack=column(draw, codes, n_host),
            source=column(draw, in_sources, n_host),
        ),
    )


def spelled(trace: Trace) -> dict[str, list[tuple[Any, ...]]]:
    """Each kind of record with all codes and references spelled out: equal for traces that say the
    same.
    """
    ops = [
        (int(s), int(d), n)
        for s, d, n in zip(
            trace.ops.start_ns, trace.ops.dur_ns, trace.strings.decode(trace.ops.name), strict=True
        )
    ]
    result: dict[str, list[tuple[Any, ...]]] = {}
    for kind, table in trace.tables():
        columns = []
        for name, declared in table.__dataclass_fields__.items():
            values = getattr(table, name)
            if declared.metadata["unit"] == "string":
                columns.append(trace.strings.decode(values))
            elif "of" in declared.metadata:
                pool = {
                    "sources": [s.path for s in trace.sources],
                    "ops": ops,
                    "devices": [
                        (d.host, d.identity) if d.identity else (d.host, d.index)
                        for d in trace.devices
                    ],
                    "streams": [
                        (s.device != NULL and trace.devices[s.device].host, s.name, s.pid)
                        for s in trace.streams
                    ],
                }
                columns.append(
                    [
                        pool[declared.metadata["of"]][i] if i != NULL else None
                        for i in values.tolist()
                    ]
                )
            elif kind == "counters" and name == "kernel":
                columns.append(
                    [
                        (int(trace.kernels.start_ns[i]), int(trace.kernels.dur_ns[i]))
                        if i != NULL
                        else None
                        for i in values
                    ]
                )
            else:
                columns.append([None if value != value else value for value in values.tolist()])
        result[kind] = sorted(zip(*columns, strict=True), key=repr)
    return result
