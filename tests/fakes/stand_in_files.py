"""Writes the files of rocprof v1 and rocprof-sys, in their own forms, of what a stand-in program
did.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Record = dict[str, Any]
_RESULTS = (
    "Index",
    "KernelName",
    "gpu-id",
    "queue-id",
    "queue-index",
    "pid",
    "tid",
    "grd",
    "wgr",
    "lds",
    "scr",
    "arch_vgpr",
    "accum_vgpr",
    "sgpr",
    "wave_size",
    "sig",
    "obj",
)
_TIMES = ("DispatchNs", "BeginNs", "EndNs", "CompleteNs", "DurationNs")


def write_v1(
    output: Path, processes: Sequence[Record], *, hip: bool, counters: Sequence[str] = ()
) -> None:
    """results.csv, and with a trace results.json, results.stats.csv and results.sysinfo.txt, of all
    processes together.
    """
    kernels = [(process["pid"], kernel) for process in processes for kernel in process["kernels"]]
    rows = [
        [
            n,
            f"{k['name']}.kd",
            2,
            0,
            n,
            pid,
            pid,
            k["workgroups"] * k["size"],
            k["size"],
            0,
            0,
            32,
            4,
            48,
            64,
            "0x0",
            "0x1",
            *(k["workgroups"] for _ in counters),
            k["call"],
            k["start"],
            k["end"],
            k["end"] + 500,
            k["end"] - k["start"],
        ]
        for n, (pid, k) in enumerate(kernels)
    ]
    with output.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC).writerows(rows)
    # the tool quotes names and no header
    output.write_text(",".join((*_RESULTS, *counters, *_TIMES)) + "\n" + output.read_text())
    if counters:
        return
    output.with_suffix(".stats.csv").write_text(_stats([k for _, k in kernels]))
    output.with_suffix(".sysinfo.txt").write_text("ROCk module is loaded\n")
    if hip:
        output.with_suffix(".json").write_text(_chrome(processes))


def _stats(kernels: Sequence[Record]) -> str:
    names = list(dict.fromkeys(k["name"] for k in kernels))
    total = sum(k["end"] - k["start"] for k in kernels) or 1
    lines = ['"Name","Calls","TotalDurationNs","AverageNs","Percentage"']
    for name in names:
        times = [k["end"] - k["start"] for k in kernels if k["name"] == name]
        lines.append(
            f'"{name}.kd",{len(times)},{sum(times)},{sum(times) // len(times)},'
            f"{100 * sum(times) / total}"
        )
    return "\n".join(lines) + "\n"


def _chrome(processes: Sequence[Record]) -> str:
    """The tool's Chrome trace: numbers of the sections as process ids, exact times as text in the
    arguments.
    """
    events: list[Record] = [{}]
    sections = ((1, "COPY"), (2, "CPU HIP API"), (6, "GPU0"))
    events += [
        {"args": {"name": name}, "ph": "M", "pid": pid, "name": "process_name", "sort_index": n}
        for n, (pid, name) in enumerate(sections)
    ]
    arrow = 0
    for process in processes:
        pid = str(process["pid"])
        for k in process["kernels"]:
            events.append(
                _span(
                    6,
                    k["name"],
                    k["start"],
                    k["end"],
                    {"dev-id": "2", "queue-id": "0", "pid": pid, "tid": pid, "stream-id": "0"},
                )
            )
            events.append(
                {
                    **_span(
                        2, "hipLaunchKernel", k["call"], k["call"] + 1500, {"pid": pid, "tid": pid}
                    ),
                    "tid": pid,
                }
            )
            arrow += 1
            events += [
                {
                    "ts": k[time] // 1000,
                    "ph": phase,
                    "cat": "DataFlow",
                    "id": arrow,
                    "pid": section,
                    "tid": lane,
                    "name": "dep",
                }
                for time, phase, section, lane in (
                    ("call", "s", 2, process["pid"]),
                    ("start", "t", 6, 0),
                )
            ]
        for c in process["copies"]:
            events.append(
                _span(
                    1,
                    "CopyHostToDevice",
                    c["start"],
                    c["end"],
                    {"dev-id": "2", "queue-id": "0", "pid": pid, "tid": pid, "stream-id": "0"},
                )
            )
    return (
        '{ "traceEvents":['
        + "\n,".join(json.dumps(event) for event in events)
        + '\n],"otherData":{}}\n'
    )


def _span(section: int, name: str, start: int, end: int, args: Record) -> Record:
    return {
        "ph": "X",
        "name": name,
        "pid": str(section),
        "tid": "0",
        "ts": str(start // 1000),
        "dur": str((end - start) // 1000),
        "args": {
            "BeginNs": str(start),
            "EndNs": str(end),
            **args,
            "Name": name,
            "Data": "",
            "DurationNs": str(end - start),
        },
    }


def write_perfetto(path: Path, kernels: Sequence[Record], pid: int) -> None:
    """A Perfetto trace with a clock snapshot, the process, and one slice per kernel on a stream's
    track.
    """
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

    trace = Trace()
    first = trace.packet.add()
    first.trusted_packet_sequence_id = 1
    first.sequence_flags = 1
    for clock in (1, 3, 6):
        reading = first.clock_snapshot.clocks.add()
        reading.clock_id, reading.timestamp = clock, kernels[0]["call"] if kernels else 1
    for uuid, parent, name in ((1, 0, ""), (2, 1, "HIP Activity Device 0, Queue 0")):
        packet = trace.packet.add()
        packet.trusted_packet_sequence_id = 1
        packet.track_descriptor.uuid = uuid
        if parent:
            packet.track_descriptor.parent_uuid, packet.track_descriptor.name = parent, name
        else:
            packet.track_descriptor.process.pid, packet.track_descriptor.process.process_name = (
                pid,
                "python",
            )
    for kernel in kernels:
        for kind, at in (
            (TrackEvent.TYPE_SLICE_BEGIN, kernel["start"]),
            (TrackEvent.TYPE_SLICE_END, kernel["end"]),
        ):
            packet = trace.packet.add()
            packet.trusted_packet_sequence_id = 1
            packet.timestamp, packet.timestamp_clock_id = at, 6
            packet.track_event.type, packet.track_event.track_uuid = kind, 2
            if kind == TrackEvent.TYPE_SLICE_BEGIN:
                packet.track_event.name = kernel["name"]
                packet.track_event.categories.append("rocm_kernel_dispatch")
    path.write_bytes(trace.SerializeToString())
