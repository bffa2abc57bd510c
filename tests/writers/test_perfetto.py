"""The Perfetto writer against the official protos: what comes out is what went in."""

from __future__ import annotations

import hashlib
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

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
from profharness.writers.perfetto import LeftOut, WriteOptions, WriteReport, write
from profharness.writers.protobuf import wire
from tests.writers.decode import Decoded, decode, multiset
from tests.writers.strategies import traces

# a new encoding changes it: compare both files in a trace processor before renewing it
GOLDEN = "e0a8b063275cfe5ee7e217d577524b3b8d0eb1aabf170a7678e2427d2aeabbc3"
UNNAMED = "(no name recorded)"
PROPERTY = settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def written(
    trace: Trace, options: WriteOptions | None = None, **attributes: str | int
) -> tuple[Decoded, WriteReport]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.pftrace"
        report = write(trace, path, attributes=attributes, options=options or WriteOptions())
        assert report.bytes == path.stat().st_size
        return decode(path), report


def wanted(
    trace: Trace, table: Kernels | Copies | Api | Ops | Marks
) -> Counter[tuple[int, int, str]]:
    names = table.name
    if isinstance(table, Copies):
        names = np.where(table.name < 0, table.kind, table.name)
    rows = zip(table.start_ns.tolist(), table.dur_ns.tolist(), names.tolist(), strict=True)
    return Counter((start, dur, trace.strings[name] or UNNAMED) for start, dur, name in rows)


def wanted_requests(trace: Trace) -> Counter[tuple[int, int, str]]:
    r = trace.requests
    return Counter(
        (int(s), int(d - s), "request" if ok else "failed request")
        for s, d, ok in zip(r.sent_ns, r.done_ns, r.ok, strict=True)
    )


@pytest.mark.slow
@PROPERTY
@given(traces())
def test_every_record_comes_back_once(trace: Trace) -> None:
    got, report = written(trace)
    assert multiset(got.gpu) == wanted(trace, trace.kernels) + wanted(trace, trace.copies)
    hosts = (
        wanted(trace, trace.api)
        + wanted(trace, trace.ops)
        + wanted(trace, trace.marks)
        + wanted_requests(trace)
    )
    assert multiset(got.slices) == hosts
    assert report.slices == hosts.total()
    assert (report.kernels, report.copies, report.samples) == (
        len(trace.kernels),
        len(trace.copies),
        len(trace.samples),
    )


@pytest.mark.slow
@PROPERTY
@given(traces())
def test_track_event_representation_keeps_every_record(trace: Trace) -> None:
    got, _ = written(trace, WriteOptions(gpu_repr="track-event"))
    device = wanted(trace, trace.kernels) + wanted(trace, trace.copies)
    hosts = (
        wanted(trace, trace.api)
        + wanted(trace, trace.ops)
        + wanted(trace, trace.marks)
        + wanted_requests(trace)
    )
    assert got.gpu == []
    assert multiset(got.slices) == device + hosts


@pytest.mark.slow
@PROPERTY
@given(traces())
def test_counters_are_exact_and_closed(trace: Trace) -> None:
    got, _ = written(trace)
    s = trace.samples
    series: dict[tuple[int, int, int], list[tuple[int, int, float]]] = {}
    for i in np.argsort(s.at_ns, kind="stable"):
        series.setdefault((s.source[i], s.device[i], s.metric[i]), []).append(
            (int(s.at_ns[i]), int(s.until_ns[i]), float(s.value[i]))
        )
    expected = Counter()
    for rows in series.values():
        points = [(at, value) for at, _, value in rows]
        at, until, value = rows[-1]
        expected[tuple(points + ([(until, value)] if until > at else []))] += 1
    found: dict[int, list[tuple[int, float]]] = {}
    for track, ts, value in got.counters:
        found.setdefault(track, []).append((ts, value))
    assert Counter(tuple(points) for points in found.values()) == expected


@pytest.mark.slow
@PROPERTY
@given(traces())
def test_event_ids_are_unique_and_arrows_point_at_the_right_work(trace: Trace) -> None:
    got, report = written(trace)
    by_id = {event.event_id: event for event in got.gpu}
    assert len(by_id) == len(got.gpu)
    submitted = Counter(event for s in got.slices for event in s.submits)
    assert set(submitted.values()) <= {1}
    assert set(submitted) <= set(by_id)
    assert report.flows == submitted.total()
    assert submitted.total() == len(_linked(trace))
    for s in got.slices:
        notes = dict(s.notes)
        for event in s.submits:
            row = event - 1
            table, row = (
                (trace.kernels, row)
                if row < len(trace.kernels)
                else (trace.copies, row - len(trace.kernels))
            )
            assert table.correlation[row] == notes["correlation"]


@pytest.mark.slow
@PROPERTY
@given(traces())
def test_both_representations_draw_the_same_arrows(trace: Trace) -> None:
    typed, _ = written(trace)
    plain, _ = written(trace, WriteOptions(gpu_repr="track-event"))
    by_id = {event.event_id: (event.ts, event.dur, event.name) for event in typed.gpu}
    ends = {flow: (s.ts, s.dur, s.name) for s in plain.slices for flow in s.ends_flows}
    wanted_pairs = Counter((s.ts, s.dur, by_id[event]) for s in typed.slices for event in s.submits)
    assert (
        Counter((s.ts, s.dur, ends[flow]) for s in plain.slices for flow in s.flows) == wanted_pairs
    )


def _linked(trace: Trace) -> list[int]:
    """Device rows with a call of the same file (or one beside it, of the same process), process and
    correlation, by plain loops.
    """
    devices = (trace.kernels, trace.copies)
    process = [(s.pass_name, s.layer, s.format, s.host, s.rank, s.pid) for s in trace.sources]
    with_calls, with_work = (
        set(trace.api.source.tolist()),
        {int(s) for table in devices for s in table.source},
    )

    def owner(source: int) -> int:
        beside = [i for i in sorted(with_calls - with_work) if process[i] == process[source]]
        alone = source in with_calls and source in with_work
        return source if alone or trace.sources[source].pid is None or not beside else beside[0]

    def pid(table: Api | Kernels | Copies, i: int) -> int:
        recorded = trace.sources[table.source[i]].pid if table.pid[i] < 0 else int(table.pid[i])
        return -1 if recorded is None else recorded

    found = []
    for first, table in zip((0, len(trace.kernels)), devices, strict=True):
        pairs = [
            (owner(int(t.source[i])), pid(t, i)) for t in (trace.api, table) for i in range(len(t))
        ]
        vague = {who for who, known in pairs if known < 0}

        def key(t: Api | Kernels | Copies, i: int, vague: set[int] = vague) -> tuple[int, int, int]:
            who = owner(int(t.source[i]))
            return who, -1 if who in vague else pid(t, i), int(t.correlation[i])

        calls = {key(trace.api, i) for i in range(len(trace.api))}
        found += [
            first + i
            for i in range(len(table))
            if table.correlation[i] > 0 and key(table, i) in calls
        ]
    return found


@pytest.mark.slow
@PROPERTY
@given(traces())
def test_processes_of_different_hosts_passes_ranks_and_files_never_share_a_pid(
    trace: Trace,
) -> None:
    got, _ = written(trace)
    shown = Counter(
        (got.machine_of_track[uuid], t.process.pid)
        for uuid, t in got.tracks.items()
        if t.HasField("process")
    )
    assert set(shown.values()) <= {1}
    threads = Counter(
        (got.machine_of_track[uuid], t.thread.tid)
        for uuid, t in got.tracks.items()
        if t.HasField("thread")
    )
    assert set(threads.values()) <= {1}


@pytest.mark.slow
@PROPERTY
@given(traces())
def test_equal_traces_give_equal_bytes(trace: Trace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        digests = set()
        for name in ("a.pftrace", "b.pftrace", "c.pftrace.gz", "d.pftrace.gz"):
            path = Path(folder) / name
            write(trace, path)
            digests.add((path.suffix, hashlib.sha256(path.read_bytes()).hexdigest()))
        assert len(digests) == 2
        assert [e.ts for e in decode(Path(folder) / "a.pftrace").gpu] == [
            e.ts for e in decode(Path(folder) / "c.pftrace.gz").gpu
        ]


def small_trace() -> Trace:
    strings = Strings(
        (
            "gemm",
            "Memcpy HtoD",
            "h2d",
            "hipLaunchKernel",
            "hip",
            "aten::mm",
            "[2, 3]",
            "b4",
            "point",
            "power_w",
            "WAVES",
            "[3, 1]",
        )
    )
    source = Source(
        path="a.json",
        format="kineto",
        host="node0",
        rank=0,
        pid=42,
        pass_name="torch",
        layer="torch",
        residual_ns=310,
        alignment="markers",
    )
    return Trace(
        (source,),
        strings,
        (Device("0", "node0", "0000:c1:00.0", "AMD Instinct MI300X", "AMD", 304),),
        (Stream(0, "3"),),
        kernels=Kernels.build(
            start_ns=[1000],
            dur_ns=[50],
            name=0,
            device=0,
            stream=0,
            pid=42,
            correlation=9,
            vgpr=64,
            workgroup_count_x=10,
            workgroup_count_y=2,
            workgroup_count_z=1,
            workgroup_size_x=256,
            workgroup_size_y=1,
            workgroup_size_z=1,
            lds_bytes=1024,
            lds_dynamic_bytes=512,
            op=0,
            source=0,
        ),
        copies=Copies.build(
            start_ns=[900],
            dur_ns=[0],
            name=1,
            kind=2,
            bytes=4096,
            device=0,
            stream=0,
            pid=42,
            source=0,
        ),
        api=Api.build(
            start_ns=[800], dur_ns=[30], name=3, domain=4, pid=42, tid=43, correlation=9, source=0
        ),
        ops=Ops.build(
            start_ns=[790],
            dur_ns=[50],
            name=5,
            pid=42,
            tid=43,
            shapes=6,
            strides=11,
            sequence=17,
            flops=12.0,
            source=0,
        ),
        marks=Marks.build(
            start_ns=[700], dur_ns=[500], name=7, kind=8, point=7, items=4, pid=42, source=0
        ),
        samples=Samples.build(
            at_ns=[700, 800], until_ns=[800, 900], metric=9, value=[300.5, 310.25], source=0
        ),
        counters=Counters.build(kernel=[0], name=10, value=[128.0], source=0),
        requests=Requests.build(
            intended_ns=[600], sent_ns=[610], done_ns=[690], items=4, ok=1, source=0
        ),
    )


def test_a_kernel_carries_its_launch() -> None:
    got, _ = written(small_trace())
    kernel, copy = got.gpu
    assert dict(kernel.args) == {
        "device": 0,
        "stream": 3,
        "registers_per_thread": 64,
        "shared_mem_static": 1024,
        "shared_mem_dynamic": 512,
        "grid_size": (10, 2, 1),
        "workgroup_size": (256, 1, 1),
        "WAVES": 128.0,
        "kernel_name": "gemm",
        "operator": "aten::mm",
    }
    assert (kernel.stage, kernel.queue, kernel.pid, kernel.gpu) == ("kernel", "stream 3", 42, 0)
    assert (copy.name, copy.stage, copy.dur, dict(copy.args)) == (
        "Memcpy HtoD",
        "copy",
        0,
        {"device": 0, "stream": 3, "bytes": 4096},
    )


def test_a_kernel_carries_its_operator_as_a_slice_too() -> None:
    got, _ = written(small_trace(), WriteOptions(gpu_repr="track-event"))
    notes = {shown.name: dict(shown.notes) for shown in got.slices}
    assert notes["gemm"]["operator"] == "aten::mm"
    assert "operator" not in notes["Memcpy HtoD"]


def test_host_spans_stand_on_named_tracks_with_their_details() -> None:
    got, report = written(small_trace())
    shown = {s.name: (got.path(s.track), s.category, dict(s.notes)) for s in got.slices}
    assert shown == {
        "aten::mm": (
            ("torch · rank 0", "thread 43"),
            "op",
            {"shapes": "[2, 3]", "strides": "[3, 1]", "sequence number": 17, "flops": 12.0},
        ),
        "hipLaunchKernel": (("torch · rank 0", "thread 43"), "hip", {"correlation": 9}),
        "b4": (("torch · rank 0", "Benchmark", "points"), "point", {"point": "b4", "items": 4}),
        "request": (
            ("torch · rank 0", "Benchmark", "requests"),
            "request",
            {"items": 4, "intended ns": 600},
        ),
    }
    assert report == WriteReport(
        kernels=1, copies=1, slices=4, samples=2, flows=1, bytes=report.bytes
    )


def test_the_file_says_what_it_is() -> None:
    got, _ = written(small_trace(), run_id="r1", points=3)
    attributes = {
        a.key: a.string_value or a.long_value
        for p in got.packets
        for a in p.trace_attributes.attribute
    }
    assert attributes["profharness.run_id"] == "r1"
    assert attributes["profharness.points"] == 3
    assert attributes["profharness.source.0.residual_ns"] == 310
    assert attributes["profharness.source.0.alignment"] == "markers"
    assert attributes["profharness.source.0.pass"] == "torch"
    (snapshot,) = [p.clock_snapshot for p in got.packets if p.HasField("clock_snapshot")]
    assert snapshot.primary_trace_clock == 6
    assert [(c.clock_id, c.timestamp) for c in snapshot.clocks] == [(6, 610)]
    (gpu,) = [p.gpu_info.gpus for p in got.packets if p.HasField("gpu_info")]
    assert [(g.name, g.vendor, g.pci_bdf) for g in gpu] == [
        ("AMD Instinct MI300X #0", "AMD", "0000:c1:00.0")
    ]
    (system,) = [p.system_info for p in got.packets if p.HasField("system_info")]
    assert system.machine_name == "node0"
    assert len([p for p in got.packets if p.HasField("trace_uuid")]) == 1


def test_small_trace_is_the_golden_file(tmp_path: Path) -> None:
    write(small_trace(), tmp_path / "g.pftrace", attributes={"run_id": "golden"})
    assert hashlib.sha256((tmp_path / "g.pftrace").read_bytes()).hexdigest() == GOLDEN


def test_two_hosts_are_two_machines_with_the_same_clock() -> None:
    strings = Strings(("k",))
    sources = (
        Source(path="a", format="kineto", host="n1", rank=1, pid=9),
        Source(path="b", format="kineto", host="n0", rank=0, pid=9),
    )
    devices = (Device("0", "n1", name="H100"), Device("0", "n0", name="H100"))
    kernels = Kernels.build(
        start_ns=[5, 5], dur_ns=[1, 2], name=0, device=[0, 1], stream=[0, 1], pid=9, source=[0, 1]
    )
    got, _ = written(Trace(sources, strings, devices, (Stream(0, "7"), Stream(1, "7")), kernels))
    assert {(e.machine == 0, e.dur, e.gpu, e.pid) for e in got.gpu} == {
        (False, 1, 0, 9),
        (True, 2, 0, 9),
    }
    clocks = {p.machine_id: p.clock_snapshot for p in got.packets if p.HasField("clock_snapshot")}
    assert len(clocks) == 2
    assert len({snapshot.SerializeToString() for snapshot in clocks.values()}) == 1
    assert {p.system_info.machine_name for p in got.packets if p.HasField("system_info")} == {
        "n0",
        "n1",
    }


def test_equal_pids_of_two_passes_stay_apart_under_the_name_of_the_pass() -> None:
    strings = Strings(("k",))
    sources = tuple(
        Source(path=p, format="kineto", host="n0", rank=0, pid=1, pass_name=p)
        for p in ("torch", "rocprofv3")
    )
    kernels = Kernels.build(
        start_ns=[5, 5], dur_ns=[1, 2], name=0, device=0, stream=0, pid=1, source=[0, 1]
    )
    got, _ = written(Trace(sources, strings, (Device("0", "n0"),), (Stream(0, "0"),), kernels))
    processes = {
        t.process.process_name: t.process for t in got.tracks.values() if t.HasField("process")
    }
    assert set(processes) == {"torch · rank 0", "rocprofv3 · rank 0"}
    assert processes["torch · rank 0"].pid == 1
    assert processes["rocprofv3 · rank 0"].pid > 4_194_304
    assert "pid 1 on its host" in processes["rocprofv3 · rank 0"].process_labels
    assert {e.queue for e in got.gpu} == {
        "torch · rank 0 · stream 0",
        "rocprofv3 · rank 0 · stream 0",
    }


def test_client_and_server_of_a_served_pass_are_told_apart() -> None:
    strings = Strings(("k",))
    sources = (
        Source(path="r", format="requests", host="n0", pid=7, pass_name="torch"),
        Source(path="t", format="kineto", host="n0", pid=8, pass_name="torch"),
        Source(path="d", format="kineto", host="n0", pid=7, pass_name="direct"),
        Source(path="s", format="telemetry", host="n0", pass_name="torch"),
    )
    requests = Requests.build(1, intended_ns=1, sent_ns=1, done_ns=4, ok=1, source=0)
    ops = Ops.build(start_ns=[1, 2], dur_ns=[1, 2], name=0, pid=[8, 7], tid=[8, 7], source=[1, 2])
    got, _ = written(Trace(sources, strings, ops=ops, requests=requests))
    assert {
        t.process.process_name: t.process.pid for t in got.tracks.values() if t.HasField("process")
    }.keys() == {"torch · client", "torch · server", "direct"}


def test_the_throughput_of_a_backend_is_one_track() -> None:
    sources = tuple(
        Source(
            path=f"{point}/trials.csv", format="trials", host="n0", pass_name="bare", point=point
        )
        for point in ("torch-b1", "torch-b4")
    )
    samples = Samples.build(
        at_ns=[1, 5], until_ns=[2, 6], metric=0, value=[3.0, 4.0], source=[0, 1]
    )
    got, _ = written(Trace(sources, Strings(("throughput",)), samples=samples))
    names = [t.name for t in got.tracks.values()]
    assert names.count("throughput") == names.count("Telemetry · bare · torch · n0") == 1


def test_what_the_ranks_of_one_host_held_is_told_apart() -> None:
    sources = tuple(Source(path=f"{r}.json", format="kineto", host="n0", rank=r) for r in (0, 1))
    devices = (Device("0", "n0"), Device("1", "n0", name="H100"))
    samples = Samples.build(
        at_ns=1, until_ns=1, device=[-1, 0, -1, 1], metric=0, value=[1.0] * 4, source=[0, 0, 1, 1]
    )
    got, _ = written(Trace(sources, Strings(("torch_allocated",)), devices, samples=samples))
    assert sorted(t.name for t in got.tracks.values() if t.name.startswith("Memory")) == [
        "Memory of torch · n0 · rank 0",
        "Memory of torch · n0 · rank 0 · GPU 0",
        "Memory of torch · n0 · rank 1",
        "Memory of torch · n0 · rank 1 · H100 GPU 1",
    ]


def test_what_cannot_be_written_is_left_out_and_counted() -> None:
    strings = Strings(("k", "power_w"))
    kernels = Kernels.build(start_ns=[-5, 10, 20, 30], dur_ns=[1, -1, 1, 1], name=0, source=0)
    samples = Samples.build(at_ns=[1, 2], until_ns=[1, 2], metric=1, value=[np.nan, 3.0], source=0)
    counters = Counters.build(kernel=[0, 2], name=0, value=[1.0, 7.0], source=0)
    trace = Trace(
        (Source(path="a", format="x"),),
        strings,
        kernels=kernels,
        samples=samples,
        counters=counters,
    )
    got, report = written(trace, WriteOptions(max_kernels=1))
    assert [(e.ts, dict(e.args).get("k")) for e in got.gpu] == [(20, 7.0)]
    assert [value for _, _, value in got.counters] == [3.0]
    assert {(x.table, x.count) for x in report.left_out} == {("kernels", 1), ("samples", 1)}
    assert [x.reason for x in report.left_out] == [
        "a start before time zero, which the format cannot hold",
        "a negative duration",
        "more than the 1 kernels asked for; the first were kept",
        "a value that is not a finite number",
    ]


def test_the_report_says_in_words_what_was_left_out() -> None:
    kernels = Kernels.build(start_ns=np.arange(1500), dur_ns=1, name=0, source=0)
    _, report = written(
        Trace((Source(path="a", format="x"),), Strings(("k",)), kernels=kernels),
        WriteOptions(max_kernels=300),
    )
    assert report.left_out == (
        LeftOut("kernels", 1200, "more than the 300 kernels asked for; the first were kept"),
    )
    wrote, left = report.lines()
    assert wrote.startswith(
        "wrote 300 kernels, 0 copies and fills, 0 host spans, 0 telemetry values, 0 launch arrows, "
    )
    assert (
        left
        == "left out 1\u2009200 kernels: more than the 300 kernels asked for; the first were kept"
    )


def test_a_graph_launch_points_at_all_its_kernels() -> None:
    kernels = 1000
    strings = Strings(("k", "hipGraphLaunch", "hip"))
    table = Kernels.build(
        start_ns=np.arange(kernels) * 10,
        dur_ns=5,
        name=0,
        pid=3,
        correlation=np.repeat([4, 5], kernels // 2),
        source=0,
    )
    api = Api.build(
        start_ns=[0, 1, 50],
        dur_ns=[1, 1, 1],
        name=1,
        domain=2,
        pid=3,
        tid=3,
        correlation=[4, 6, 5],
        source=0,
    )
    got, report = written(Trace((Source(path="a", format="x"),), strings, kernels=table, api=api))
    assert {s.ts: sorted(s.submits) for s in got.slices} == {
        0: list(range(1, 501)),
        1: [],
        50: list(range(501, 1001)),
    }
    assert report.flows == kernels


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "t.pftrace"
    write(small_trace(), path)
    before = path.read_bytes()
    broken = replace(small_trace(), streams=())  # the kernel's stream does not exist
    with pytest.raises(IndexError):
        write(broken, path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["t.pftrace"]


def test_an_empty_trace_is_a_valid_file(tmp_path: Path) -> None:
    report = write(Trace((), Strings()), tmp_path / "e.pftrace")
    assert (report.kernels, report.slices, report.samples) == (0, 0, 0)
    assert decode(tmp_path / "e.pftrace").slices == []


def test_control_characters_are_no_part_of_a_written_name() -> None:
    assert wire.text(2, "a\x1b[31m\x9b\x00b\tc\n") == wire.text(
        2, "a\\u001b[31m\\u009b\\u0000b\tc\n"
    )
    assert "\u202e".encode() in wire.text(2, "\u202ename")  # a viewer isolates what it draws
    assert wire.text(2, "half \ud800") == wire.text(2, "half ?")
