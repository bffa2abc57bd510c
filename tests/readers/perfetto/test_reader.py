"""Perfetto traces as a source: rocprofv3's as recorded, rocprof-sys's as its source code writes
them, and our own.

No recorded .proto of rocprof-sys is at hand: `rocprof_sys` builds one with the tracks, categories
and annotations that its perfetto code emits.
"""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

from profharness import readers
from profharness.analysis.kernels import hotspots
from profharness.errors import InputError
from profharness.readers.perfetto import reader as pftrace
from profharness.trace.columns.table import NULL
from profharness.trace.model import (
    Api,
    ClockDomain,
    Counters,
    Device,
    Kernels,
    Samples,
    Source,
    Stream,
    Strings,
    Trace,
)
from profharness.trace.wanted import Wanted
from profharness.understand.merge.command import MergeOptions, merge_to_file
from profharness.writers.perfetto import WriteOptions, write
from tests.writers.strategies import traces

RECORDED = "fixtures/rocm/rocprofv3/pftrace"
BOOT, MONOTONIC = 6, 3
SUSPENDED = 7_200_000_000_000  # ns that the machine slept
T0 = 10**15


class Writer:
    """Writes packets as the Perfetto SDK does: names inline, an explicit clock on each event."""

    def __init__(self, *, suspended: int = 0, primary: int = BOOT) -> None:
        self.trace = pb.Trace()
        snapshot = self.trace.packet.add(trusted_packet_sequence_id=1).clock_snapshot
        for clock, value in ((BOOT, T0), (MONOTONIC, T0 - suspended), (1, T0 + 5)):
            snapshot.clocks.add(clock_id=clock, timestamp=value)
        snapshot.primary_trace_clock = primary
        self.trace.packet.add(trusted_packet_sequence_id=2, sequence_flags=1)

    def packet(self, at: int) -> pb.TracePacket:
        return self.trace.packet.add(
            trusted_packet_sequence_id=2, sequence_flags=2, timestamp=at, timestamp_clock_id=BOOT
        )

    def track(
        self,
        uuid: int,
        name: str = "",
        *,
        pid: int = 0,
        tid: int = 0,
        parent: int = 0,
        unit: int = 0,
        multiplier: int = 0,
    ) -> int:
        track = self.trace.packet.add(trusted_packet_sequence_id=2).track_descriptor
        track.uuid = uuid
        if name:
            track.name = name
        if parent:
            track.parent_uuid = parent
        if tid:
            track.thread.pid, track.thread.tid = pid, tid
        elif pid:
            track.process.pid = pid
        if unit:
            track.counter.unit = unit
            track.counter.unit_multiplier = multiplier or 1
        return uuid

    def slice(
        self, track: int, category: str, name: str, begin: int, end: int, **notes: float | str
    ) -> None:
        event = self.packet(begin).track_event
        event.type, event.track_uuid, event.name = 1, track, name
        if category:
            event.categories.append(category)
        for label, value in notes.items():
            note = event.debug_annotations.add(name=label)
            if isinstance(value, str):
                note.string_value = value
            elif isinstance(value, float):
                note.double_value = value
            else:
                note.uint_value = value
        last = self.packet(end).track_event
        last.type, last.track_uuid = 2, track

    def count(self, track: int, at: int, value: float) -> None:
        event = self.packet(at).track_event
        event.type, event.track_uuid, event.double_counter_value = 4, track, value

    def write(self, path: Path) -> Path:
        path.write_bytes(self.trace.SerializeToString())
        return path


def rocprof_sys(*, suspended: int = 0) -> Writer:
    """Two kernels (one on a queue's track, one on a HIP stream's), a copy on the same stream, a
    call, a function, a sensor.
    """
    made = Writer(suspended=suspended)
    made.track(1, pid=500)
    thread = made.track(2, pid=500, tid=501, parent=1)
    queue, stream = (
        made.track(3, "GPU Kernel Dispatch [2] Queue 7", parent=1),
        made.track(4, "HIP Activity Stream 5", parent=1),
    )
    power = made.track(5, "GPU Current Power [2] (S)", parent=1, unit=1)
    shape = {
        "workgroup_size": "(16,8,1)",
        "grid_size": "(40,8,2)",
        "private_segment_size": 64,
        "group_segment_size": 1024,
    }
    host = T0 - suspended  # the host side is stamped with CLOCK_MONOTONIC
    made.slice(thread, "host", "main", host + 100, host + 9000)
    made.slice(
        thread,
        "rocm_hip_api",
        "hipLaunchKernel",
        T0 + 200,
        T0 + 300,
        begin_ns=T0 + 200,
        stack_id=11,
    )
    made.slice(
        queue,
        "rocm_kernel_dispatch",
        "k<float>(int)",
        T0 + 400,
        T0 + 700,
        begin_ns=T0 + 400,
        end_ns=T0 + 700,
        stack_id=11,
        stream_id=0,
        queue=7,
        dispatch_id=3,
        kernel_id=9,
        **shape,
    )
    made.slice(
        stream,
        "rocm_hip_stream",
        "q(int)",
        T0 + 800,
        T0 + 850,
        begin_ns=T0 + 800,
        end_ns=T0 + 850,
        corr_id=12,
        stream_id=5,
        queue=7,
        dispatch_id=4,
        kernel_id=2,
        **shape,
    )
    made.slice(
        stream,
        "rocm_hip_stream",
        "MEMORY_COPY_HOST_TO_DEVICE",
        T0 + 900,
        T0 + 950,
        begin_ns=T0 + 900,
        end_ns=T0 + 950,
        corr_id=13,
        stream_id=5,
        copy_bytes=4096,
    )
    made.slice(thread, "rocm_marker_api", "profharness.step:3:64", T0 + 150, T0 + 990)
    made.slice(thread, "timer_sampling", "samples", host + 200, host + 210)
    made.count(power, host + 500, 412.5)
    return made


def names(trace: Trace, table: str) -> list[str]:
    return trace.strings.decode(getattr(trace, table).name)


class TestRocprofSys:
    def test_kernels_of_queues_and_of_streams(self, tmp_path: Path) -> None:
        trace = readers.read(rocprof_sys().write(tmp_path / "perfetto-trace-500.proto"))
        kernels = trace.kernels
        assert trace.sources[0].format == "perfetto"
        assert trace.sources[0].clock is ClockDomain.BOOTTIME
        assert names(trace, "kernels") == ["k<float>(int)", "q(int)"]
        assert (kernels.start_ns - T0).tolist() == [400, 800]
        assert kernels.dur_ns.tolist() == [300, 50]
        assert kernels.workgroups.tolist() == [3 * 1 * 2] * 2
        assert (kernels.workgroup_count_x.tolist(), kernels.workgroup_size_y.tolist()) == (
            [3, 3],
            [8, 8],
        )
        assert (
            kernels.dispatch.tolist(),
            kernels.queue.tolist(),
            kernels.correlation.tolist(),
        ) == ([3, 4], [7, 7], [11, 12])
        assert (
            kernels.lds_bytes.tolist(),
            kernels.scratch_bytes.tolist(),
            kernels.pid.tolist(),
        ) == ([1024, 1024], [64, 64], [500, 500])
        assert trace.devices[kernels.device[0]].index == "2"
        assert [trace.streams[row].name for row in kernels.stream] == ["0", "5"]
        assert len(trace.counters) == 0

    def test_copies_calls_functions_marks_and_sensors(self, tmp_path: Path) -> None:
        trace = readers.read(rocprof_sys().write(tmp_path / "trace.proto"))
        assert (trace.copies.bytes.tolist(), trace.strings.decode(trace.copies.kind)) == (
            [4096],
            ["h2d"],
        )
        assert (
            names(trace, "api"),
            trace.strings.decode(trace.api.domain),
            trace.api.correlation.tolist(),
            trace.api.tid.tolist(),
        ) == (["hipLaunchKernel"], ["hip"], [11], [501])
        assert names(trace, "ops") == ["main"]
        assert (trace.strings.decode(trace.marks.kind), trace.marks.items.tolist()) == (
            ["step"],
            [64],
        )
        assert (trace.strings.decode(trace.samples.metric), trace.samples.value.tolist()) == (
            ["power_w"],
            [412.5],
        )
        assert trace.devices[trace.samples.device[0]].index == "2"
        assert [(p.count, "timer_sampling" in p.message) for p in trace.problems] == [(1, True)]

    def test_the_hosts_side_is_moved_by_the_time_that_the_machine_slept(
        self, tmp_path: Path
    ) -> None:
        trace = readers.read(rocprof_sys(suspended=SUSPENDED).write(tmp_path / "trace.proto"))
        assert trace.ops.start_ns.tolist() == [T0 + 100]
        assert trace.samples.at_ns.tolist() == [T0 + 500]
        assert trace.api.start_ns.tolist() == [
            T0 + 200
        ]  # of the ROCm runtime, CLOCK_BOOTTIME already
        assert trace.kernels.start_ns.tolist() == [T0 + 400, T0 + 800]
        moved = [p for p in trace.problems if "CLOCK_MONOTONIC" in p.message]
        assert [(p.severity, str(SUSPENDED) in p.message) for p in moved] == [("info", True)]

    def test_the_time_between_two_clock_readings_is_no_suspension(self, tmp_path: Path) -> None:
        trace = readers.read(rocprof_sys(suspended=130).write(tmp_path / "trace.proto"))
        assert trace.ops.start_ns.tolist() == [T0 + 100 - 130]
        assert not any("CLOCK_MONOTONIC" in p.message for p in trace.problems)

    def test_operators_can_be_left_out(self, tmp_path: Path) -> None:
        path = rocprof_sys().write(tmp_path / "trace.proto")
        assert len(pftrace.read(path, wanted=Wanted.DEVICES).ops) == 0
        assert len(pftrace.read(path, wanted=Wanted.DEVICES).kernels) == 2


class TestRocprofv3:
    def test_products_triples_and_counters(self, tmp_path: Path) -> None:
        made = Writer()
        made.track(1, pid=9)
        made.track(2, 'STREAM [" 3 "] ', parent=1)
        common = {
            "agent": "Agent-4",
            "corr_id": 5,
            "queue": 1,
            "tid": 10,
            "stream_ID": 3,
            "VGPR_Count": 8,
            "SGPR_Count": 32,
            "Scratch_Size": 0,
        }
        made.slice(
            2,
            "kernel_dispatch",
            "product",
            100,
            200,
            begin_ns=100,
            end_ns=200,
            workgroup_size=1024,
            grid_size=1000448,
            **common,
        )
        made.slice(
            2,
            "kernel_dispatch",
            "triple",
            300,
            410,
            begin_ns=300,
            end_ns=410,
            workgroup_size="(64, 2, 1)",
            grid_size="(128, 4, 1)",
            SQ_WAVES=12.0,
            GRBM_COUNT=7,
            **common,
        )
        trace = readers.read(made.write(tmp_path / "x_results.pftrace"))
        assert trace.kernels.workgroups.tolist() == [977, 4]
        assert trace.kernels.workgroup_count_y.tolist() == [NULL, 2]
        got = {
            (int(k), n): v
            for k, n, v in zip(
                trace.counters.kernel,
                trace.strings.decode(trace.counters.name),
                trace.counters.value,
                strict=True,
            )
        }
        assert got == {(1, "SQ_WAVES"): 12.0, (1, "GRBM_COUNT"): 7.0}
        assert any(
            p.severity == "info" and p.count == 2 and "cuts those that overlap" in p.message
            for p in trace.problems
        )

    def test_overlapping_dispatches_keep_the_times_of_their_annotations(
        self, tmp_path: Path
    ) -> None:
        made = Writer()
        made.track(2, 'STREAM [" 3 "] ')
        made.slice(2, "kernel_dispatch", "long", 100, 400, begin_ns=100, end_ns=400)
        made.slice(2, "kernel_dispatch", "short", 200, 300, begin_ns=200, end_ns=300)
        crossing = Writer()
        crossing.track(2, 'STREAM [" 3 "] ')
        crossing.slice(2, "kernel_dispatch", "first", 100, 300, begin_ns=100, end_ns=300)
        crossing.slice(2, "kernel_dispatch", "second", 200, 400, begin_ns=200, end_ns=400)
        for writer, expected in (
            (made, {"long": 300, "short": 100}),
            (crossing, {"first": 200, "second": 200}),
        ):
            trace = readers.read(writer.write(tmp_path / "x.pftrace"))
            assert (
                dict(zip(names(trace, "kernels"), trace.kernels.dur_ns.tolist(), strict=True))
                == expected
            )

    def test_copies_between_agents(self, tmp_path: Path) -> None:
        made = Writer()
        made.track(2, "COPY to Agent [5]")
        for place, (name, source, target) in enumerate(
            (("MEMORY_COPY_HOST_TO_DEVICE", 0, 5), ("MEMORY_COPY_DEVICE_TO_DEVICE", 4, 5))
        ):
            begin = 1000 * (place + 1)
            made.slice(
                2,
                "memory_copy",
                name,
                begin,
                begin + 10,
                begin_ns=begin,
                end_ns=begin + 10,
                src_agent=f"Agent-{source}",
                dst_agent=f"Agent-{target}",
                copy_bytes=64,
            )
        trace = readers.read(made.write(tmp_path / "x.pftrace"))
        places = [[device.index for device in trace.devices].index(text) for text in ("4", "5")]
        assert trace.strings.decode(trace.copies.kind) == ["h2d", "p2p"]
        assert (trace.copies.src_device.tolist(), trace.copies.dst_device.tolist()) == (
            [NULL, places[0]],
            [places[1]] * 2,
        )

    def test_counters_count_in_their_unit(self, tmp_path: Path) -> None:
        made = Writer()
        made.track(1, "ALLOCATE BYTES on Agent [0] (CPU)", unit=3, multiplier=1024)
        made.track(2, "ALLOCATE BYTES on Agent [4] (GPU)", unit=3, multiplier=1024)
        made.count(1, 50, 2.0)
        made.count(2, 60, 3.0)
        trace = readers.read(made.write(tmp_path / "x.pftrace"))
        assert dict(
            zip(trace.samples.at_ns.tolist(), trace.samples.value.tolist(), strict=True)
        ) == {50: 2048.0, 60: 3072.0}
        assert [
            trace.devices[row].index if row != NULL else "" for row in trace.samples.device
        ] == ["", "4"]

    @pytest.mark.parametrize(
        "field", ["chunks_overwritten", "chunks_discarded", "trace_writer_packet_loss"]
    )
    def test_lost_events_are_an_error(self, tmp_path: Path, field: str) -> None:
        made = rocprof_sys()
        setattr(
            made.trace.packet.add(trusted_packet_sequence_id=1).trace_stats.buffer_stats.add(),
            field,
            3,
        )
        trace = readers.read(made.write(tmp_path / "x.pftrace"))
        assert [
            (p.count, p.message.startswith("events dropped"))
            for p in trace.problems
            if p.severity == "error"
        ] == [(3, True)]

    def test_begins_without_end_are_counted(self, tmp_path: Path) -> None:
        made = rocprof_sys()
        event = made.packet(T0 + 10_000).track_event
        event.type, event.track_uuid, event.name = 1, 3, "open"
        event.categories.append("rocm_kernel_dispatch")
        trace = readers.read(made.write(tmp_path / "x.pftrace"))
        assert len(trace.kernels) == 2
        assert any(p.count == 1 and "no end" in p.message for p in trace.problems)

    @pytest.mark.parametrize(
        ("clock", "domain"),
        [
            (1, ClockDomain.REALTIME),
            (MONOTONIC, ClockDomain.MONOTONIC),
            (BOOT, ClockDomain.BOOTTIME),
        ],
    )
    def test_the_clock_is_the_primary_one(
        self, tmp_path: Path, clock: int, domain: ClockDomain
    ) -> None:
        assert (
            readers.read(Writer(primary=clock).write(tmp_path / "x.pftrace")).sources[0].clock
            is domain
        )


class TestRecorded:
    def test_a_run_with_calls_and_kernels(self, shared: Path) -> None:
        trace = readers.read(shared / RECORDED / "mi300a_3648722_results.pftrace")
        sums = {
            domain: (int(np.sum(mine)), int(trace.api.dur_ns[mine].sum()))
            for domain in ("hip", "hsa")
            if (mine := trace.api.domain == trace.strings.find(domain)) is not None
        }
        assert sums == {"hsa": (1520, 307547790), "hip": (1125, 660285053)}
        assert (len(trace.kernels), int(trace.kernels.dur_ns.sum())) == (15, 194762)
        assert trace.sources[0].clock is ClockDomain.BOOTTIME
        assert trace.sources[0].pid == 3648722
        assert set(trace.api.tid.tolist()) == {3648722, 3648740, 3648850}
        starts = [table.start_ns for table in (trace.api, trace.kernels)]
        ends = [table.start_ns + table.dur_ns for table in (trace.api, trace.kernels)]
        assert (min(part.min() for part in starts), max(part.max() for part in ends)) == (
            131529871447132,
            131550566865468,
        )
        top = hotspots.default(trace)
        assert (len(top.rows), top.rows[0].total_ns) == (5, 81282)
        assert top.rows[0].name.startswith(
            "_parallel_reduce_amdgpu(Int64, _, ROCDeviceArray<Float64, 1,"
        )
        first = trace.kernels
        assert (first.workgroups[0], first.vgpr[0], first.sgpr[0], first.correlation[0]) == (
            977,
            8,
            32,
            575,
        )
        assert set(trace.strings.decode(trace.samples.metric)) == {
            "ALLOCATE BYTES on Agent [4] (GPU)",
            "ALLOCATE BYTES on Agent [0] (CPU)",
            "SCRATCH MEMORY on Agent [4] (GPU)",
        }

    def test_each_kernel_has_its_launching_call(self, shared: Path) -> None:
        trace = readers.read(shared / RECORDED / "mi300a_3648722_results.pftrace")
        calls = dict(zip(trace.api.correlation.tolist(), names(trace, "api"), strict=True))
        assert {calls[number] for number in trace.kernels.correlation.tolist()} == {
            "hipModuleLaunchKernel",
            "hipMemcpyWithStream",
        }

    def test_an_empty_run_is_whole(self, shared: Path) -> None:
        trace = readers.read(shared / RECORDED / "mi300a_3634743_results_EMPTY.pftrace")
        assert not any(len(table) for _, table in trace.tables())
        assert [(p.severity, "holds no event" in p.message) for p in trace.problems] == [
            ("warning", True)
        ]
        assert (
            "tracing library",
            "Perfetto v44.0-94bdc3da5 (94bdc3da58ad5343e7db3c40fba76309103e342a)",
        ) in trace.sources[0].details

    def test_gzipped_is_the_same(self, shared: Path, tmp_path: Path) -> None:
        plain = shared / RECORDED / "mi300a_3648722_results.pftrace"
        packed = tmp_path / "trace.pftrace.gz"
        packed.write_bytes(gzip.compress(plain.read_bytes()))
        assert (
            readers.read(packed).api.start_ns.tolist() == readers.read(plain).api.start_ns.tolist()
        )

    def test_a_cut_file_gives_what_is_before_the_cut(self, shared: Path, tmp_path: Path) -> None:
        whole = (shared / RECORDED / "mi300a_3648722_results.pftrace").read_bytes()
        path = tmp_path / "trace.pftrace"
        path.write_bytes(whole[: len(whole) // 2])
        trace = readers.read(path)
        assert 0 < len(trace.api) < 2645
        assert any(p.severity == "error" and "cut or damaged" in p.message for p in trace.problems)


class TestOwn:
    """What we write is what we read."""

    @pytest.mark.slow
    @settings(
        max_examples=40,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )
    @given(trace=traces())
    def test_device_work_calls_and_operators_return(self, trace: Trace, tmp_path: Path) -> None:
        path = tmp_path / "merged.pftrace"
        write(trace, path, options=WriteOptions())
        read = pftrace.read(path)

        def rows(of: Trace, table: str) -> Counter[tuple[int, int, str]]:
            records = getattr(of, table)
            named = [
                name or "(no name recorded)" for name in of.strings.decode(records.name)
            ]  # what the writer shows for none
            return Counter(
                zip(records.start_ns.tolist(), records.dur_ns.tolist(), named, strict=True)
            )

        for table in ("kernels", "api", "ops"):
            assert rows(read, table) == rows(trace, table)
        assert Counter(read.copies.start_ns.tolist()) == Counter(trace.copies.start_ns.tolist())
        assert sorted(read.copies.bytes.tolist()) == sorted(trace.copies.bytes.tolist())

    def test_geometry_places_and_launches_return(self, tmp_path: Path) -> None:
        strings = Strings(["k", "hipLaunchKernel", "hip", "SQ_WAVES"])
        kernels = Kernels.build(
            start_ns=[T0 + 10, T0 + 50],
            dur_ns=[5, 7],
            name=[0, 0],
            device=0,
            stream=0,
            pid=3,
            correlation=[8, 9],
            workgroup_count_x=4,
            workgroup_count_y=[2, 1],
            workgroup_count_z=1,
            workgroup_size_x=64,
            workgroup_size_y=1,
            workgroup_size_z=1,
            workgroups=[8, 4],
            vgpr=24,
            lds_bytes=512,
            source=0,
        )
        devices = (
            Device(
                "3",
                "node0",
                identity="0000:29:00.0",
                name="AMD Instinct MI300X",
                vendor="AMD",
                compute_units=304,
            ),
        )
        path = tmp_path / "merged.pftrace"
        write(
            Trace(
                sources=(Source("a.json", "kineto", ClockDomain.BOOTTIME, host="node0", pid=3),),
                strings=strings,
                kernels=kernels,
                devices=devices,
                streams=(Stream(0, "7", 3),),
                counters=Counters.build(kernel=[1], name=3, value=16.5, source=0),
                api=Api.build(
                    start_ns=[T0], dur_ns=4, name=1, domain=2, pid=3, tid=3, correlation=8, source=0
                ),
            ),
            path,
        )
        read = pftrace.read(path)
        assert read.kernels.correlation.tolist() == [8, NULL]  # the other call is not in the trace
        assert read.api.correlation.tolist() == [8]
        assert (read.counters.kernel.tolist(), read.counters.value.tolist()) == ([1], [16.5])
        assert read.streams == (Stream(0, "7", 3),)
        assert read.kernels.pid.tolist() == [3, 3]
        assert read.kernels.workgroups.tolist() == [8, 4]
        assert read.kernels.vgpr.tolist() == [24, 24]
        assert read.kernels.lds_bytes.tolist() == [512, 512]
        assert read.devices == devices
        assert read.sources[0].clock is ClockDomain.BOOTTIME
        assert read.sources[0].host == "node0"

    def test_passes_that_were_merged_are_sources_of_their_own(self, tmp_path: Path) -> None:
        read = pftrace.read(merged(tmp_path, {"torch": "", "torch2": "", "rocprofv3": ""}))
        assert [(source.pass_name, source.layer) for source in read.sources] == [
            ("", ""),
            ("torch", "torch"),
            ("torch2", "torch2"),
            ("rocprofv3", "rocprofv3"),
        ]
        assert all(source.clock is ClockDomain.BOOTTIME for source in read.sources)
        by_time = np.argsort(read.kernels.start_ns)
        assert read.kernels.source[by_time].tolist() == [1, 2, 3]
        assert read.problems == ()

    def test_passes_on_several_hosts_are_said_to_be_read_as_one(self, tmp_path: Path) -> None:
        """Numbers of processes repeat there."""
        read = pftrace.read(merged(tmp_path, {"torch": "node1", "rocprofv3": "node2"}))
        assert len(read.sources) == 1
        assert read.sources[0].clock is ClockDomain.BOOTTIME
        assert any(p.count == 2 and "read as one" in p.message for p in read.problems)


def merged(folder: Path, passes: dict[str, str]) -> Path:
    """A merged file of these passes, each with its host and one kernel."""
    places = np.arange(len(passes))
    kernels = Kernels.build(start_ns=T0 + 10 * places, dur_ns=5, name=0, device=NULL, source=places)
    sources = tuple(
        Source(f"{name}.json", "kineto", ClockDomain.RUN, host=host, pass_name=name, layer=name)
        for name, host in passes.items()
    )
    path = folder / "merged.pftrace"
    write(Trace(sources=sources, strings=Strings(["k"]), kernels=kernels), path)
    return path


@pytest.mark.parametrize("content", [b"\nplain text\n", b"\n", b"\x0a\x02ab and text", b""])
def test_what_is_no_trace_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.pftrace"
    path.write_bytes(content)
    with pytest.raises(InputError):
        readers.read(path)


def test_a_counter_that_only_its_file_knows_keeps_its_unit(tmp_path: Path) -> None:
    """Of rocprofv3's allocations, in bytes by a number of the format; of another's, by a text."""
    units = (("ALLOCATE BYTES on Agent [4] (GPU)", "B"), ("wobble", "mK"))
    strings = Strings([*(name for name, _ in units), "power_w", "unknown"])
    trace = Trace(
        sources=(Source("a.pftrace", "perfetto", ClockDomain.BOOTTIME, units=units),),
        strings=strings,
        samples=Samples.build(
            at_ns=[T0] * 4, until_ns=T0, metric=range(4), device=NULL, value=2.0, source=0
        ),
    )
    first, second = tmp_path / "first.pftrace", tmp_path / "second.pftrace"
    write(trace, first)
    read = pftrace.read(first)
    assert read.sources[0].units == units  # power_w has one that everybody knows
    write(read, second)
    assert pftrace.read(second).sources[0].units == units


def test_a_text_that_is_no_unit_is_left_out(tmp_path: Path) -> None:
    source = Source("a", "perfetto", units=(("long", "x" * 17),))
    samples = Samples.build(at_ns=[T0], until_ns=T0, metric=[0], device=NULL, value=2.0, source=0)
    path = tmp_path / "t.pftrace"
    write(Trace(sources=(source,), strings=Strings(["long"]), samples=samples), path)
    assert pftrace.read(path).sources[0].units == ()


def test_allocations_that_rocprofv3_counted_are_still_bytes_once_merged(
    shared: Path, tmp_path: Path
) -> None:
    recorded = shared / "fixtures/rocm/rocprofv3/pftrace/mi300a_3648722_results.pftrace"
    merged = merge_to_file([recorded], tmp_path / "merged.pftrace", MergeOptions()).path
    units = pftrace.read(recorded).sources[0].units
    assert set(dict(units).values()) == {"B"}
    assert pftrace.read(merged).sources[0].units == units
