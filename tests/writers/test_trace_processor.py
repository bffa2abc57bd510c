"""The writer before a real trace processor: no import errors, and every record as it went in."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from perfetto.trace_processor import TraceProcessor

from profharness.readers import read
from profharness.trace.model import (
    Api,
    Copies,
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
from profharness.writers.options import GpuRepresentation
from profharness.writers.perfetto import WriteOptions, write
from tests.conftest import shared_path

# fixtures
from tests.trace_processor import LoadTrace, errors, load_trace, trace_processor_folder  # noqa: F401  fixtures
from tests.writers.test_perfetto import wanted, wanted_requests

BASE = 1_795_000_000_000_000_000  # epoch ns: the largest times that occur
FACTS = shared_path("fixtures/kineto/facts.json")


def busy_trace(rows: int = 300) -> Trace:
    """Two hosts, two passes, ranks that share pids; overlapping, touching, nested, crossing and
    empty spans.
    """
    random = np.random.default_rng(11)
    strings = Strings(
        (
            *(f"kernel_{i}<float>" for i in range(9)),
            "hip",
            "hipLaunchKernel",
            "h2d",
            "trial",
            "range",
            "power_w",
            "op",
        )
    )
    sources = tuple(
        Source(path=f"{p}-{r}", format="kineto", host=f"node{r}", rank=r, pid=100, pass_name=p)
        for p in ("torch", "rocprofv3")
        for r in (0, 1)
    )

    def times(n: int) -> dict[str, np.ndarray]:
        start = BASE + np.sort(random.integers(0, 4 * n, n)) * 100
        dur = random.choice([0, 100, 200, 300, 1500], n)
        return {"start_ns": start, "dur_ns": dur}

    def owned(n: int) -> dict[str, np.ndarray | int]:
        return {"source": random.integers(0, 4, n), "pid": 100}

    def names(n: int) -> np.ndarray:
        return random.integers(0, 9, n)

    n = rows
    kernels = Kernels.build(
        **times(n),
        **owned(n),
        name=names(n),
        stream=random.integers(0, 4, n),
        tid=100,
        correlation=random.integers(1, n, n),
        vgpr=64,
        lds_bytes=1024,
        workgroup_count_x=7,
        workgroup_count_y=1,
        workgroup_count_z=1,
        workgroup_size_x=256,
        workgroup_size_y=1,
        workgroup_size_z=1,
    )
    kernels = kernels.with_columns(device=kernels.source % 2)
    copies = Copies.build(**times(n), **owned(n), kind=strings.code("h2d"), bytes=4096, stream=1)
    copies = copies.with_columns(device=copies.source % 2)
    api = Api.build(
        **times(n),
        **owned(n),
        name=strings.code("hipLaunchKernel"),
        domain=strings.code("hip"),
        tid=random.integers(100, 103, n),
        correlation=random.permutation(n) + 1,
    )
    ops = Ops.build(
        **times(n), **owned(n), name=names(n), tid=random.integers(100, 103, n), shapes=names(n)
    )
    kind = random.choice([strings.code("trial"), strings.code("range")], n)
    marks = Marks.build(**times(n), **owned(n), name=names(n), kind=kind, tid=100, items=4)
    spans = times(n)
    requests = Requests.build(
        intended_ns=spans["start_ns"],
        sent_ns=spans["start_ns"],
        done_ns=spans["start_ns"] + spans["dur_ns"],
        ok=random.integers(0, 2, n),
        source=random.integers(0, 4, n),
    )
    at = BASE + np.arange(n) * 1000
    samples = Samples.build(
        at_ns=at,
        until_ns=at + 1000,
        device=np.arange(n) % 2,
        metric=strings.code("power_w"),
        value=random.normal(300, 50, n),
        source=0,
    )
    devices = (
        Device("0", "node0", name="AMD Instinct MI300X", vendor="AMD"),
        Device("0", "node1", name="AMD Instinct MI300X", vendor="AMD"),
    )
    streams = tuple(Stream(d, str(i)) for d in (0, 1) for i in (0, 1))
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
        requests=requests,
    )


def found(client: TraceProcessor, query: str) -> Counter[tuple[int, int, str]]:
    return Counter((row.ts, row.dur, row.name) for row in client.query(query))


def host_spans(trace: Trace) -> Counter[tuple[int, int, str]]:
    return (
        wanted(trace, trace.api)
        + wanted(trace, trace.ops)
        + wanted(trace, trace.marks)
        + wanted_requests(trace)
    )


def arrows(client: TraceProcessor) -> Counter[tuple[int, int, str]]:
    return Counter(
        (r.a, r.b, r.n)
        for r in client.query(
            "SELECT a.ts AS a, b.ts AS b, b.name AS n FROM flow JOIN slice a ON slice_out = "
            "a.id JOIN slice b ON slice_in = b.id"
        )
    )


def launch_pairs(trace: Trace) -> Counter[tuple[int, int, str]]:
    """(start of the call, start of the kernel, its name), by a plain loop."""
    api, kernels = trace.api, trace.kernels
    calls = {
        (int(api.source[i]), int(api.correlation[i])): int(api.start_ns[i]) for i in range(len(api))
    }
    pairs: Counter[tuple[int, int, str]] = Counter()
    for i in range(len(kernels)):
        if (call := calls.get((int(kernels.source[i]), int(kernels.correlation[i])))) is not None:
            pairs[call, int(kernels.start_ns[i]), trace.strings[int(kernels.name[i])]] += 1
    return pairs


NOT_GPU = "SELECT s.ts, s.dur, s.name FROM slice s WHERE s.id NOT IN (SELECT id FROM gpu_slice)"


@pytest.fixture
# the fixture that is imported
def busy(tmp_path: Path, load_trace: LoadTrace) -> tuple[Trace, TraceProcessor]:  # noqa: F811  the fixture
    trace = busy_trace()
    write(trace, tmp_path / "t.pftrace.gz", attributes={"run_id": "r7"})
    return trace, load_trace(tmp_path / "t.pftrace.gz")


@pytest.mark.slow
def test_nothing_is_lost_or_bent(busy: tuple[Trace, TraceProcessor]) -> None:
    trace, client = busy
    assert errors(client) == []
    assert found(client, "SELECT ts, dur, name FROM gpu_slice") == wanted(
        trace, trace.kernels
    ) + wanted(trace, trace.copies)
    assert found(client, NOT_GPU) == host_spans(trace)
    assert arrows(client) == launch_pairs(trace)
    assert arrows(client).total() > 40
    values = Counter((r.ts, r.value) for r in client.query("SELECT ts, value FROM counter"))
    s = trace.samples
    closing = [(int(s.until_ns[i]), float(s.value[i])) for i in (len(s) - 2, len(s) - 1)]
    assert values == Counter([*zip(s.at_ns.tolist(), s.value.tolist(), strict=True), *closing])
    tracks = {
        (r.name, r.unit, r.description)
        for r in client.query("SELECT name, unit, description FROM counter_track")
    }
    assert tracks == {
        ("power_w", "W", "power as the sensor says; of the whole package where dies share one")
    }


@pytest.mark.slow
def test_hosts_passes_and_devices_stand_apart(busy: tuple[Trace, TraceProcessor]) -> None:
    trace, client = busy
    machines = {
        r.name: r.machine
        for r in client.query(
            "SELECT p.name AS name, p.machine_id AS machine FROM process p WHERE p.name IS NOT NULL"
        )
    }
    assert set(machines) == {
        f"{p} · rank {r} · node{r}" for p in ("torch", "rocprofv3") for r in (0, 1)
    }
    assert len({machines[f"torch · rank {r} · node{r}"] for r in (0, 1)}) == 2
    assert machines["torch · rank 0 · node0"] == machines["rocprofv3 · rank 0 · node0"]
    owners = Counter(
        (r.process, r.track)
        for r in client.query(
            "SELECT p.name AS process, t.name AS track FROM gpu_slice g JOIN process p USING "
            "(upid) JOIN gpu_track t ON g.track_id = t.id"
        )
    )
    assert all(track.startswith(process.rpartition(" · ")[0]) for process, track in owners)
    per_source = Counter(np.concatenate((trace.kernels.source, trace.copies.source)).tolist())
    for number, source in enumerate(trace.sources):
        name = f"{source.pass_name} · rank {source.rank} · {source.host}"
        assert (
            sum(count for (process, _), count in owners.items() if process == name)
            == per_source[number]
        )
    assert len(list(client.query("SELECT * FROM gpu"))) == 2
    threads = Counter(
        (r.process, r.thread)
        for r in client.query(
            "SELECT p.name AS process, t.name AS thread FROM thread t JOIN process p USING "
            "(upid) WHERE t.name LIKE 'thread 1%'"
        )
    )
    assert set(threads.values()) == {1}
    assert {thread for _, thread in threads} == {"thread 100", "thread 101", "thread 102"}


@pytest.mark.slow
def test_launch_arguments_and_attributes_can_be_queried(busy: tuple[Trace, TraceProcessor]) -> None:
    _, client = busy
    rows = client.query("""SELECT extract_arg(arg_set_id, 'launch.grid_size.x') AS grid, extract_arg(arg_set_id, 'registers_per_thread') AS regs,
        extract_arg(arg_set_id, 'device') AS device, extract_arg(arg_set_id, 'stream') AS stream, extract_arg(arg_set_id, 'kernel_name') AS name,
        name AS shown FROM gpu_slice WHERE render_stage_category = 2""")
    seen = [(r.grid, r.regs, r.device, r.stream in {0, 1}, r.name == r.shown) for r in rows]
    assert set(seen) == {(7, 64, 0, True, True)}  # each node has one GPU, number 0
    assert len(seen) == 300
    attributes = {
        r.name: r.str_value
        for r in client.query(
            "SELECT name, str_value FROM metadata WHERE name LIKE 'trace_attribute%'"
        )
    }
    assert attributes["trace_attribute.profharness.run_id"] == "r7"
    assert attributes["trace_attribute.profharness.source.3.pass"] == "rocprofv3"


# the fixture that is imported
@pytest.mark.slow
def test_track_event_representation_is_as_exact(tmp_path: Path, load_trace: LoadTrace) -> None:  # noqa: F811  the fixture
    trace = busy_trace()
    write(trace, tmp_path / "t.pftrace", options=WriteOptions(gpu_repr="track-event"))
    client = load_trace(tmp_path / "t.pftrace")
    assert errors(client) == []
    everything = wanted(trace, trace.kernels) + wanted(trace, trace.copies) + host_spans(trace)
    assert found(client, "SELECT ts, dur, name FROM slice") == everything
    forward = Counter(
        {arrow: count for arrow, count in launch_pairs(trace).items() if arrow[0] <= arrow[1]}
    )
    assert arrows(client) == forward
    assert forward.total() > 20


# the fixture that is imported
@pytest.mark.slow
@pytest.mark.parametrize(
    ("shown", "argument"), [("render-stage", "operator"), ("track-event", "debug.operator")]
)
def test_the_operator_of_a_kernel_can_be_queried(
    shown: GpuRepresentation,
    argument: str,
    tmp_path: Path,
    load_trace: LoadTrace,  # noqa: F811  the fixture
) -> None:
    strings = Strings(("k", "aten::mm"))
    one = {"pid": 3, "tid": 3, "source": 0}
    trace = Trace(
        (Source(path="a", format="x"),),
        strings,
        ops=Ops.build(start_ns=[100], dur_ns=[50], name=1, sequence=5, **one),
        kernels=Kernels.build(start_ns=[200, 300], dur_ns=[50, 50], name=0, op=[0, -1], **one),
    )
    write(trace, tmp_path / "t.pftrace", options=WriteOptions(gpu_repr=shown))
    client = load_trace(tmp_path / "t.pftrace")
    rows = client.query(
        f"SELECT extract_arg(arg_set_id, '{argument}') AS op FROM slice WHERE name = 'k' ORDER BY ts"
    )
    assert [row.op for row in rows] == ["aten::mm", None]
    (number,) = client.query(
        "SELECT extract_arg(arg_set_id, 'debug.sequence number') AS number FROM slice "
        "WHERE name = 'aten::mm'"
    )
    assert number.number == 5


# the fixture that is imported
@pytest.mark.slow
def test_calls_inside_ops_keep_their_parents(tmp_path: Path, load_trace: LoadTrace) -> None:  # noqa: F811  the fixture
    strings = Strings(("step", "aten::mm", "hipLaunchKernel", "hip", "range"))
    one = {"pid": 3, "tid": 3, "source": 0}
    trace = Trace(
        (Source(path="a", format="x"),),
        strings,
        marks=Marks.build(start_ns=[100], dur_ns=[100], name=0, kind=4, **one),
        ops=Ops.build(start_ns=[100, 150], dur_ns=[50, 50], name=1, **one),
        api=Api.build(start_ns=[100, 190], dur_ns=[10, 10], name=2, domain=3, **one),
    )
    write(trace, tmp_path / "t.pftrace")
    rows = load_trace(tmp_path / "t.pftrace").query(
        "SELECT s.ts, s.name, s.depth, p.name AS parent FROM slice s LEFT JOIN slice p ON "
        "s.parent_id = p.id"
    )
    assert Counter((r.ts, r.name, r.depth, r.parent) for r in rows) == Counter(
        [
            (100, "step", 0, None),
            (100, "aten::mm", 1, "step"),
            (150, "aten::mm", 1, "step"),
            (100, "hipLaunchKernel", 2, "aten::mm"),
            (190, "hipLaunchKernel", 2, "aten::mm"),
        ]
    )


def fixture_traces() -> list[str]:
    if not FACTS.is_file():
        return []
    return [
        f["file"]
        for f in json.loads(FACTS.read_text())
        if 50 <= f["kernels"] <= 8000 and "rocprofv3" not in f["file"]
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", fixture_traces())
def test_real_traces_come_out_exact(
    shared: Path,
    name: str,
    tmp_path: Path,
    load_trace: LoadTrace,  # noqa: F811  the fixture that is imported
) -> None:
    (facts,) = [f for f in json.loads(FACTS.read_text()) if f["file"] == name]
    trace = read(shared / "fixtures" / "kineto" / name)
    report = write(trace, tmp_path / "t.pftrace")
    client = load_trace(tmp_path / "t.pftrace")
    assert errors(client) == []
    (row,) = client.query("SELECT count(*) AS events, sum(dur) AS total FROM gpu_slice")
    assert (row.events, row.total) == (facts["gpu_events"], facts["sum_gpu_ns"])
    assert found(client, NOT_GPU) == host_spans(trace)
    assert len(list(client.query("SELECT * FROM flow"))) == report.flows
