"""What an analysis tells of kernels stands in the trace where it is known, and is no counter."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from profharness.readers import read
from profharness.trace.kernel_figures import NUMBERS, KernelFigures
from profharness.trace.model import Counters, Device, Kernels, Source, Stream, Strings, Trace
from profharness.writers.options import GpuRepresentation, WriteOptions
from profharness.writers.perfetto import write
from tests.trace_processor import LoadTrace, errors, load_trace, trace_processor_folder  # noqa: F401  fixtures
from tests.writers.decode import decode, multiset

NAMES = (*NUMBERS, "limiter")
TOLD = [
    {
        "fill_percent": 12.5,
        "share_of_peak_percent": 40.25,
        "flops": 2 * 10**12,
        "bytes_at_least": 0,
    },
    {"limiter": "bandwidth", "bytes_at_least": 3_000_000_000},
    {},
    {"fill_percent": 100.0, "limiter": "compute"},
]
"""Of four kernels, the last one of another process."""
KINDS: tuple[GpuRepresentation, ...] = ("render-stage", "track-event")


def trace() -> Trace:
    kernels = Kernels.build(
        start_ns=[0, 20, 40, 60],
        dur_ns=10,
        name=0,
        device=0,
        stream=0,
        pid=[9, 9, 9, 8],
        source=0,
    )
    return Trace(
        (Source("t", "rocpd"),),
        Strings(("k", "SQ_WAVES")),
        (Device("0", name="AMD Instinct MI300X"),),
        (Stream(0, "7", 9),),
        kernels,
        counters=Counters.build(kernel=[1], name=1, value=4.0, source=0),
    )


def tell(_: Trace) -> KernelFigures:
    columns = [[float(row.get(name, np.nan)) for row in TOLD] for name in NUMBERS]
    columns[1][2], columns[2][2] = np.inf, 1e30  # no figures
    limiters = ("compute", "bandwidth")
    said = [limiters.index(str(row["limiter"])) if "limiter" in row else -1 for row in TOLD]
    return KernelFigures(*map(np.asarray, columns), np.asarray(said), limiters)


def written(folder: Path, kind: GpuRepresentation) -> Path:
    write(trace(), folder / "m.pftrace", options=WriteOptions(kind, tell_kernels=tell))
    return folder / "m.pftrace"


@pytest.mark.parametrize("kind", KINDS)
def test_each_kernel_has_what_is_told_of_it(tmp_path: Path, kind: GpuRepresentation) -> None:
    got = decode(written(tmp_path, kind))
    found = {e.ts: dict(e.args) for e in got.gpu} or {e.ts: dict(e.notes) for e in got.slices}
    shown = [{n: v for n, v in found[ts].items() if n in NAMES} for ts in (0, 20, 40, 60)]
    assert shown == TOLD
    write(trace(), tmp_path / "plain.pftrace", options=WriteOptions(kind))
    plain = decode(tmp_path / "plain.pftrace")
    assert multiset(plain.gpu) == multiset(got.gpu)
    assert multiset(plain.slices) == multiset(got.slices)


@pytest.mark.parametrize("kind", KINDS)
def test_they_are_not_read_back_as_counters(tmp_path: Path, kind: GpuRepresentation) -> None:
    again = read(written(tmp_path, kind))
    counters = [again.strings[code] for code in again.counters.name.tolist()]
    assert counters == (["SQ_WAVES"] if kind == "render-stage" else [])
    assert len(again.kernels) == 4


@pytest.mark.slow
def test_a_trace_processor_finds_them(tmp_path: Path, load_trace: LoadTrace) -> None:  # noqa: F811
    client = load_trace(written(tmp_path, "render-stage"))
    assert errors(client) == []
    rows = client.query(
        "SELECT s.ts AS ts, a.key AS key, a.display_value AS value FROM gpu_slice s "
        "JOIN args a USING (arg_set_id)"
    )
    found: dict[int, dict[str, str]] = {}
    for row in rows:
        name = row.key.rpartition(".")[2]
        if name in NAMES:
            found.setdefault(row.ts, {})[name] = row.value
    assert {
        ts: {n: v if n == "limiter" else float(v) for n, v in row.items()}
        for ts, row in found.items()
    } == {ts: row for ts, row in zip((0, 20, 40, 60), TOLD, strict=True) if row}
