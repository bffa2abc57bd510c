"""What a Perfetto file says, so that files which their writer numbered in another order compare equal."""

from __future__ import annotations

import re
from collections import Counter

from tests.writers.decode import Decoded


def records(got: Decoded) -> dict[str, Counter]:
    """Everything that a file says, without the numbers that its writer chose."""
    processes = {
        (got.machine_of_track[uuid], track.process.pid): (
            track.process.process_name,
            tuple(label for label in track.process.process_labels if " on its host" not in label),
        )
        for uuid, track in got.tracks.items()
        if track.HasField("process")
    }

    def place(uuid: int) -> tuple:
        return got.machine_of_track[uuid], got.path(uuid)

    devices = {
        (packet.machine_id, number): re.sub(r"#\d+", "", str(one))
        for packet in got.packets
        if packet.HasField("gpu_info")
        for number, one in enumerate(packet.gpu_info.gpus)
    }
    assert all(value == e.gpu for e in got.gpu for name, value in e.args if name == "device")
    gpu = {
        e.event_id: (
            e.ts,
            e.dur,
            e.name,
            e.machine,
            devices[e.machine, e.gpu],
            e.queue,
            e.stage,
            processes[e.machine, e.pid],
            tuple(arg for arg in e.args if arg[0] != "device"),
        )
        for e in got.gpu
    }
    assert len(gpu) == len(got.gpu)
    slices = Counter(
        (
            s.ts,
            s.dur,
            s.name,
            s.category,
            s.machine,
            place(s.track),
            s.notes,
            tuple(sorted(gpu[event] for event in s.submits)),
        )
        for s in got.slices
    )
    attributes = [
        packet.trace_attributes for packet in got.packets if packet.HasField("trace_attributes")
    ]
    return {
        "gpu": Counter(gpu.values()),
        "slices": slices,
        "counters": Counter((place(track), ts, value) for track, ts, value in got.counters),
        "tracks": Counter(place(uuid) for uuid in got.tracks),
        "processes": Counter(processes.values()),
        "attributes": Counter(str(one) for found in attributes for one in found.attribute),
        "gpus": Counter((machine, text) for (machine, _), text in devices.items()),
    }
