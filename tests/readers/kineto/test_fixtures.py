"""Every recorded Kineto file of the shared set against figures that were computed from its text by
other means.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from profharness import readers
from profharness.trace.columns.table import NULL
from profharness.trace.model import ClockDomain, Trace
from profharness.trace.wanted import Wanted
from tests.conftest import shared_path

KINETO = shared_path("fixtures/kineto")


def facts() -> list[Any]:
    path = KINETO / "facts.json"
    if not path.is_file():
        return [
            pytest.param(
                {},
                marks=pytest.mark.skip(
                    reason=f"needs the shared recorded files ({path} is absent)"
                ),
            )
        ]
    return [
        pytest.param(f, id=f["file"])
        for f in json.loads(path.read_text())
        if "rocprofv3" not in f["file"]
    ]


def union(start: np.ndarray, end: np.ndarray) -> int:
    total, reach = 0, None
    for a, b in sorted(zip(start.tolist(), end.tolist(), strict=True)):
        total += b - (a if reach is None or a > reach else min(reach, b))
        reach = b if reach is None else max(reach, b)
    return total


def by_device(start: np.ndarray, end: np.ndarray, device: np.ndarray) -> int:
    return sum(union(start[device == d], end[device == d]) for d in np.unique(device))


@pytest.mark.parametrize("fact", facts())
def test_figures_are_exact_to_the_nanosecond(fact: dict[str, Any]) -> None:
    trace = readers.read(KINETO / fact["file"])
    # the ranges of CUPTI's profiler have counters, and are no records of kernels
    k = trace.kernels.take(trace.kernels.start_ns != NULL)
    c, api = trace.copies, trace.api
    start, dur = np.concatenate((k.start_ns, c.start_ns)), np.concatenate((k.dur_ns, c.dur_ns))
    end, device = start + dur, np.concatenate((k.device, c.device))
    graphs = np.array(["GraphLaunch" in trace.strings[code] for code in api.name], np.bool_)
    found = {
        "kernels": len(k),
        "gpu_events": len(k) + len(c),
        "sum_kernel_ns": int(k.dur_ns.sum()),
        "sum_gpu_ns": int(dur.sum()),
        "union_kernel_ns": by_device(k.start_ns, k.start_ns + k.dur_ns, k.device),
        "union_gpu_ns": by_device(start, end, device),
        "span_gpu_ns": int(end.max() - start.min()) if len(start) else 0,
        "zero_dur_kernels": int((k.dur_ns == 0).sum()),
        "n_streams": len({*k.stream.tolist(), *c.stream.tolist()}),
        "distinct_kernel_names": len(np.unique(k.name)),
        "graph_launches": int(graphs.sum()),
        "kernels_in_graphs": int(np.isin(k.correlation, api.correlation[graphs]).sum()),
        "kernels_without_runtime": int((~np.isin(k.correlation, api.correlation)).sum()),
    }
    assert found == {key: fact[key] for key in found}
    streams: dict[str, int] = defaultdict(int)
    for position in [*k.stream.tolist(), *c.stream.tolist()]:
        stream = trace.streams[position]
        streams[f"{trace.devices[stream.device].index}/{stream.name}"] += 1
    assert streams == fact["streams"]
    source = trace.sources[0]
    assert source.clock is ClockDomain.REALTIME
    assert (source.rank, source.world_size) == (
        fact["dist"].get("rank"),
        fact["dist"].get("world_size"),
    )
    assert not [p for p in trace.problems if p.severity != "info"]


@pytest.mark.parametrize("fact", facts())
def test_without_the_host_the_rest_is_the_same(fact: dict[str, Any]) -> None:
    path = KINETO / fact["file"]
    whole = readers.read(path)
    for wanted, more in (
        (Wanted.TIMES, ()),
        (
            Wanted.DEVICES,
            (
                "correlation",
                "stream",
                "workgroups",
                "workgroup_count_x",
                "workgroup_size_x",
                "workgroup_size_y",
            ),
        ),
    ):
        bare = readers.read(path, wanted=wanted)
        assert not any(len(table) for table in (bare.ops, bare.api, bare.marks))
        assert (bare.kernels.op == NULL).all()
        for column in ("start_ns", "dur_ns", "device", *more):
            assert (getattr(bare.kernels, column) == getattr(whole.kernels, column)).all()
        assert bare.strings.decode(bare.kernels.name) == whole.strings.decode(whole.kernels.name)
        assert [(one.start_ns.tolist(), one.dur_ns.tolist()) for one in (bare.copies,)] == [
            (whole.copies.start_ns.tolist(), whole.copies.dur_ns.tolist())
        ]


def peer_summary(name: str) -> dict[str, tuple[int, float]]:
    """Kernels of TraceLens' own report: launches and summed microseconds by name."""
    rows: dict[str, tuple[int, float]] = {}
    with (KINETO / "expected" / name / "kernel_summary.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            total, count = (
                float(row["Kernel duration (µs)_sum"]),
                int(row["Kernel duration (µs)_count"]),
            )
            before = rows.get(row["Kernel name"], (0, 0.0))
            rows[row["Kernel name"]] = before[0] + count, before[1] + total
    return rows


def own_summary(trace: Trace, rows: np.ndarray) -> dict[str, tuple[int, float]]:
    found: dict[str, tuple[int, float]] = {}
    for name in np.unique(trace.kernels.name[rows]):
        chosen = rows & (trace.kernels.name == name)
        found[trace.strings[int(name)]] = (
            int(chosen.sum()),
            int(trace.kernels.dur_ns[chosen].sum()) / 1000,
        )
    return found


SUMMARISED = [
    "mi300x_bert_small",
    "mi210_gpu_only",
    "mi300x_timesformer",
    "h100_bert_small",
    "mi300x_torch_compile_triton",
    "mi300x_qwen0.5b_prefill",
    "h100_qwen0.5b_prefill",
]


@pytest.mark.parametrize("name", SUMMARISED)
def test_kernels_by_name_agree_with_a_peer(shared: Path, name: str) -> None:
    trace = readers.read(shared / "fixtures/kineto" / f"{name}.json.gz")
    ours, theirs = own_summary(trace, np.ones(len(trace.kernels), np.bool_)), peer_summary(name)
    assert {k: v[0] for k, v in ours.items()} == {k: v[0] for k, v in theirs.items()}
    assert {k: v[1] for k, v in ours.items()} == pytest.approx(
        {k: v[1] for k, v in theirs.items()}, abs=1e-3
    )


@pytest.mark.parametrize("name", SUMMARISED)
def test_busy_time_differs_from_a_peer_by_the_kernels_without_a_call(
    shared: Path, name: str
) -> None:
    """TraceLens leaves them out of its timeline (not of its kernel summary) without saying so;
    without them both agree to its rounding.
    """
    trace = readers.read(shared / "fixtures/kineto" / f"{name}.json.gz")
    k, c, known = trace.kernels, trace.copies, trace.api.correlation
    start, dur = np.concatenate((k.start_ns, c.start_ns)), np.concatenate((k.dur_ns, c.dur_ns))
    linked = np.isin(np.concatenate((k.correlation, c.correlation)), known)
    with (KINETO / "expected" / name / "gpu_timeline.csv").open(newline="") as file:
        theirs = {row["type"]: float(row["time ms"]) for row in csv.DictReader(file)}["busy_time"]
    assert union(start[linked], (start + dur)[linked]) / 1e6 == pytest.approx(theirs, abs=2e-4)
    left_out = {"mi300x_qwen0.5b_prefill": 463, "h100_qwen0.5b_prefill": 436}.get(name, 0)
    assert int((~np.isin(k.correlation, known)).sum()) == left_out
    assert (union(start, start + dur) / 1e6 > theirs * 1.3) == (left_out > 0)


@pytest.mark.parametrize(
    "name",
    ["mi300x_bert_small", "h100_bert_small", "a100_nccl_rank0of2", "v100_resnet50_old_schema"],
)
def test_operators_of_kernels_are_those_that_the_external_id_names(shared: Path, name: str) -> None:
    import gzip

    path = shared / "fixtures/kineto" / f"{name}.json.gz"
    trace = readers.read(path)
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    ids = [
        e["args"].get("External id", e["args"].get("external id", NULL))
        for e in events
        if e.get("cat") in {"kernel", "Kernel"}
    ]
    named = np.array(ids)
    assert (trace.kernels.op != NULL).all()
    assert (trace.ops.external[trace.kernels.op] == named).mean() > 0.99


def test_ids_that_repeat_the_correlation_are_not_taken_for_operators(shared: Path) -> None:
    trace = readers.read(shared / "fixtures/kineto/sampled_rank0of128.json.gz")
    k, ops, api = trace.kernels, trace.ops, trace.api
    rows = np.flatnonzero(k.op != NULL)
    assert len(rows) > 1000
    call = {int(c): i for i, c in enumerate(api.correlation)}
    for row in rows[::50]:
        at, held = call[int(k.correlation[row])], int(k.op[row])
        assert ops.tid[held] == api.tid[at] == k.tid[row]
        assert ops.start_ns[held] <= api.start_ns[at] <= ops.start_ns[held] + ops.dur_ns[held]


def test_geometry_of_both_units(shared: Path) -> None:
    trace = readers.read(shared / "fixtures/kineto/mi300x_bert_small.json.gz")
    k = trace.kernels
    names = np.array(trace.strings.decode(k.name))
    index_select = np.char.find(names, "indexSelectLargeIndex") >= 0
    assert k.workgroups[index_select].tolist() == [141] * int(index_select.sum())
    small = np.char.find(names, "MT16x16x128") >= 0
    assert 288 in k.workgroups[small].tolist()
    assert set(k.workgroup_size_x[small].tolist()) == {256}
    assert k.workgroups[names == "attn_fwd"].tolist() == [16] * 4


@pytest.mark.parametrize(
    ("flavor", "options"),
    [
        ("rocm", ()),
        ("cuda", ()),
        ("rocm", ("--unlinked-fraction", "0.1")),
        ("rocm", ("--graph-fraction", "0.5", "--kernels-per-step", "200")),
        ("cuda", ("--ts-base", "1712166678123456.789")),
    ],
)
def test_generated_traces_match_their_truth(
    shared: Path, tmp_path: Path, flavor: str, options: tuple[str, ...]
) -> None:
    generator = shared / "tools/gen_kineto.py"
    if not generator.is_file():
        pytest.skip(f"needs the generator ({generator} is absent)")
    subprocess.run(
        [
            sys.executable,
            generator,
            "--kernels",
            "2000",
            "-o",
            tmp_path / "t.json",
            "--truth",
            tmp_path / "truth.json",
            "--flavor",
            flavor,
            *options,
        ],
        check=True,
        capture_output=True,
    )
    truth = json.loads((tmp_path / "truth.json").read_text())
    trace = readers.read(tmp_path / "t.json")
    k = trace.kernels
    start, dur = (
        np.concatenate((k.start_ns, trace.copies.start_ns)),
        np.concatenate((k.dur_ns, trace.copies.dur_ns)),
    )
    assert len(k) == truth["kernels"]
    assert union(start, start + dur) == truth["busy_union_ns"]
    assert int((start + dur).max() - start.min()) == truth["span_ns"]
    assert int((~np.isin(k.correlation, trace.api.correlation)).sum()) == truth["unlinked"]
    ours = own_summary(trace, np.ones(len(k), np.bool_))
    assert {n: (c, round(t * 1000)) for n, (c, t) in ours.items()} == {
        r["name"]: (r["count"], r["total_ns"])
        for r in truth["by_name"]
        if not r["name"].startswith("Memcpy")
    }
    if not options or "--ts-base" in options:
        assert int(k.workgroups.sum()) == truth["workgroups_linked_or_not"]
        assert (trace.ops.depth[k.op] >= 0).all()
