"""Scan worker for several processes at once: each with CPUs, memory and model of its own, measured
in one window.

Imports no framework. Per point it starts one stream.py per place of the topology, waits until all
have loaded and made their first calls, gives all of them one window, and keeps all of them busy
until the last has left it. A process that dies ends the point with its words; nobody waits for it.

The windows and figures are those of multi_process_benchmark.py of the DeepSparse examples
(https://github.com/neuralmagic/deepsparse, examples/amd-azure), with one window for all in place of
one each.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":  # siblings are found as profharness_workloads says
    _here = os.path.dirname(os.path.realpath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry) != _here]
    sys.path.insert(0, os.path.dirname(os.path.dirname(_here)))

import json
import selectors
import signal
import socket
import subprocess
import time
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence

from profharness_workloads.pinned import placement
from profharness_workloads.shared import protocol, worker

HERE = os.path.dirname(os.path.abspath(__file__))
# between the last `ready` and the common start, so that every process has the message
HEAD_START_NS = 20_000_000
LOAD_LIMIT_S = 600.0
LATE_LIMIT_S = 120.0  # how far beyond the window's end one batch may take
LOOK_EVERY_S = 0.2
GRACE_S = 5.0


class Place(NamedTuple):
    """As the topology has it; `device` may be "" (the spec's own)."""

    cpus: Sequence[int]
    device: str


class Plan(NamedTuple):
    """What stays the same over the points of this worker."""

    places: Sequence[Place]
    pin: str
    memory: str


def plan_from(environ: Mapping[str, str]) -> Plan:
    """From the spec file. Raises Refusal when it holds no places."""
    path = environ["PROFHARNESS_SPEC"]
    with open(path, encoding="utf-8") as file:
        raw = json.load(file)
    places = [
        Place(tuple(entry["cpus"]), entry.get("device") or "") for entry in raw.get("places") or []
    ]
    if not places:
        raise protocol.Refusal("%s: no places to run processes in" % path, code=protocol.BAD_INPUT)
    return Plan(places, raw.get("pin") or placement.CORE, raw.get("memory") or "interleave")


class Stream:
    """One child: its process, its end of the socket, and what it has said."""

    def __init__(self, index: int, place: Place):
        self.index, self.place = index, place
        own_end, stream_end = socket.socketpair()
        environ = dict(os.environ, PROFHARNESS_STREAM_FD=str(stream_end.fileno()))
        environ.update(placement.environment(placement.Placement(tuple(place.cpus))))
        command = [sys.executable, os.path.join(HERE, "stream.py")]
        self.process = subprocess.Popen(
            command, env=environ, pass_fds=[stream_end.fileno()], stdin=subprocess.DEVNULL
        )
        stream_end.close()
        self.link = own_end
        self.said: Dict[str, Dict[str, Any]] = {}
        self._rest = b""

    def tell(self, **fields: Any) -> None:
        try:
            self.link.sendall(json.dumps(fields).encode() + b"\n")
        except OSError:
            pass  # it is dead; the next look at the processes says so

    def hear(self) -> bool:
        """Take in what has come; False when the other end is closed."""
        try:
            more = self.link.recv(65536)
        except OSError:
            more = b""
        self._rest += more
        *lines, self._rest = self._rest.split(b"\n")
        for line in lines:
            message = json.loads(line.decode())
            self.said[message["kind"]] = message
        return bool(more)

    def death(self) -> str:
        """How the process ended, or "" while it has not or has done its work."""
        for kind in ("refused", "failed"):
            if kind in self.said:
                return str(self.said[kind]["error"])
        status = self.process.poll()
        if status is None or "bye" in self.said:
            return ""
        if status < 0:
            return "it was ended by %s" % signal.Signals(-status).name
        return "it ended with exit status %d before its work was done" % status

    def __str__(self) -> str:
        return "process %d of the point (CPUs %s)" % (
            self.index,
            ",".join(map(str, self.place.cpus)),
        )


class Streams:
    """The children of one point; on leaving, none of them is alive."""

    def __init__(self, places: Sequence[Place], still_wanted: Callable[[], None]):
        self._still_wanted = still_wanted
        self.all: List[Stream] = []
        self._selector = selectors.DefaultSelector()
        self._places = places

    # typing.Self is newer than the Pythons that workers run on
    def __enter__(self) -> Streams:  # noqa: PYI034  Self is too new
        for index, place in enumerate(self._places):
            stream = Stream(index, place)
            self.all.append(stream)
            self._selector.register(stream.link, selectors.EVENT_READ, stream)
        return self

    def __exit__(self, *_: object) -> None:
        self._selector.close()
        for stream in self.all:
            stream.link.close()  # a living child ends by that
        deadline = time.monotonic() + GRACE_S
        for stream in self.all:
            try:
                stream.process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                stream.process.kill()
                stream.process.wait()

    def until_all_say(self, kind: str, limit_s: float) -> None:
        """Wait for one message from everybody. Raises RuntimeError for a death, and at the time
        limit; Refusal for one.
        """
        deadline = time.monotonic() + limit_s
        while not all(kind in stream.said for stream in self.all):
            self._still_wanted()
            for key, _ in self._selector.select(LOOK_EVERY_S):
                if not key.data.hear():
                    self._selector.unregister(key.fileobj)
            self._judge()
            if time.monotonic() > deadline:
                late = [str(stream) for stream in self.all if kind not in stream.said]
                raise RuntimeError("not %s after %g s: %s" % (kind, limit_s, "; ".join(late)))

    def _judge(self) -> None:
        for stream in self.all:
            reason = stream.death()
            if not reason:
                continue
            if "refused" in stream.said:
                refusal = stream.said["refused"]
                raise protocol.Refusal(
                    refusal["error"], refusal.get("hint", ""), int(refusal["exit_status"])
                )
            raise RuntimeError("%s: %s" % (stream, reason))


class PinnedWorkload(worker.Workload):
    """Points that differ in how many processes run, and in their batch size."""

    def __init__(self, settings: protocol.Settings, plan: Plan):
        self._settings, self._plan = settings, plan
        self.versions = {"python": sys.version.split()[0]}
        self.devices = [{"index": 0, "kind": "cpu", "name": "cpu"}]
        self.device = settings.spec.device

    def measure(
        self, point: protocol.Point, still_wanted: Callable[[], None]
    ) -> worker.Measurement:
        """Run the point's processes at once, each at its own place, and collect their times. Raises
        ValueError when there are fewer places than processes.
        """
        own = [Place(cpus, "") for cpus in point.places]
        places = (own or self._plan.places)[: point.processes]
        if len(places) < point.processes:
            raise ValueError(
                "%d processes were asked for, and there are places for %d"
                % (point.processes, len(places))
            )
        folder = self._settings.point_dir(point.id)
        with Streams(places, still_wanted) as streams:
            for stream in streams.all:
                stream.tell(**self._asked(stream, point, _times_file(folder, stream)))
            streams.until_all_say("ready", LOAD_LIMIT_S)
            starts = time.perf_counter_ns() + HEAD_START_NS
            opens = starts + int(point.warmup_seconds * 1e9)
            closes = opens + int(point.seconds * 1e9)
            for stream in streams.all:
                stream.tell(starts_ns=starts, opens_ns=opens, closes_ns=closes)
            streams.until_all_say("done", point.warmup_seconds + point.seconds + LATE_LIMIT_S)
            for stream in streams.all:
                stream.tell(kind="stop")
            streams.until_all_say("bye", LATE_LIMIT_S)
            return self._measurement(streams.all, point, (opens, closes))

    def _asked(self, stream: Stream, point: protocol.Point, path: str) -> Dict[str, Any]:
        return {
            "index": stream.index,
            "cpus": list(stream.place.cpus),
            "device": stream.place.device,
            "pin": self._plan.pin,
            "memory": self._plan.memory,
            "id": point.id,
            "params": {"batch_size": point.batch_size, "seed": (point.seed or 0) + stream.index},
            "file": path,
        }

    def _measurement(
        self, streams: Sequence[Stream], point: protocol.Point, window: Sequence[int]
    ) -> worker.Measurement:
        """The batches stay in the streams' files; their figures are the harness's business."""
        ready = [stream.said["ready"] for stream in streams]
        notes = protocol.joined(
            [
                {
                    "memory": message.get("memory", ""),
                    "memory_policy": message["note"],
                    **message.get("notes", {}),
                }
                for message in ready
            ]
        )
        compiled = [message["compile_ns"] for message in ready if message.get("compile_ns")]
        return worker.Measurement(
            [],
            [],
            point.batch_size,
            [],
            [],
            ",".join(dict.fromkeys(str(message["device"]) for message in ready)),
            compile_ns=max(compiled) if compiled else None,
            notes=notes,
            streams=[
                {
                    "index": stream.index,
                    "pid": stream.process.pid,
                    "cpus": message["cpus"],
                    "device": message["device"],
                    "batches": stream.said["done"]["batches"],
                    "file": os.path.basename(_times_file("", stream)),
                }
                for stream, message in zip(streams, ready)
            ],
            window=list(window),
        )


def _times_file(folder: str, stream: Stream) -> str:
    return os.path.join(folder, "stream-%d.i64" % stream.index)


def load(
    settings: protocol.Settings, environ: Optional[Mapping[str, str]] = None
) -> PinnedWorkload:
    """Raises Refusal when the spec holds no places."""
    return PinnedWorkload(settings, plan_from(os.environ if environ is None else environ))


if __name__ == "__main__":
    sys.exit(worker.main(load, os.environ))
