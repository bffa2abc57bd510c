"""One process of a multi-process point: pins itself, loads its model, waits at the barrier, runs
batches in a window.

It is started by worker.py of this folder, with which it speaks JSON lines over an inherited socket
(PROFHARNESS_STREAM_FD). It says `ready` or `refused`, and is told when the window begins and ends
(CLOCK_MONOTONIC, which all processes of a node share). It runs without a pause from before the
window until it is told to stop, so that slow processes finish under full load. It leaves its
batches in a file, as rows of start and duration in int64 ns.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":  # siblings are found as profharness_workloads says
    _here = os.path.dirname(os.path.realpath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry) != _here]
    sys.path.insert(0, os.path.dirname(os.path.dirname(_here)))

import array
import importlib
import json
import signal
import socket
from time import perf_counter_ns, sleep
from typing import Any, Dict, Mapping

from profharness_workloads.pinned import placement
from profharness_workloads.shared import lifetime, protocol, timing

FIRST_CALLS = 2  # made before the barrier: they compile, tune and allocate


class Link:
    """The stream's end of the socket. The coordinator's death ends the stream."""

    def __init__(self, descriptor: int):
        self._socket = socket.socket(fileno=descriptor)
        self._rest = b""

    def send(self, **fields: Any) -> None:
        self._socket.sendall(json.dumps(fields).encode() + b"\n")

    def receive(self) -> Dict[str, Any]:
        """The next message. Raises Stopped when the other end is closed."""
        while b"\n" not in self._rest:
            more = self._socket.recv(65536)
            if not more:
                raise lifetime.Stopped(
                    "the process that started this stream is gone", 128 + signal.SIGTERM
                )
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\n")
        message = json.loads(line.decode())
        return message if isinstance(message, dict) else {}

    def told_to_stop(self) -> bool:
        """Whether anything has come in since (only `stop` comes during a run), without waiting."""
        self._socket.setblocking(False)
        try:
            return bool(self._rest) or self._socket.recv(1, socket.MSG_PEEK) is not None
        except BlockingIOError:
            return False
        finally:
            self._socket.setblocking(True)


def serve(environ: Mapping[str, str], link: Link) -> None:
    """One point, from loading to the end of the window."""
    asked = link.receive()
    place = placement.Placement(tuple(asked["cpus"]), asked["pin"], asked["memory"])
    settled = placement.settle(place)
    settings = _settings(environ, asked, len(place.cpus))
    backend = importlib.import_module(
        "profharness_workloads.batch.%s_worker" % settings.spec.backend
    )
    workload = backend.load(settings)
    point = protocol.judged(protocol.Asked(str(asked["id"]), asked["params"]))
    with workload.ready(point) as action:
        first, *_, last = [timing.once(action).durations_ns[0] for _ in range(FIRST_CALLS)]
        link.send(
            kind="ready",
            device=workload.device,
            compile_ns=max(0, first - last) if workload.compiles else None,
            notes=dict(workload.notes),
            cpus=sorted(os.sched_getaffinity(0)),
            versions=dict(workload.versions),
            memory=settled.memory,
            note=settled.refused,
        )
        window = link.receive()
        with workload.marks.point(point.id, settings):
            _run(
                action,
                window,
                workload.marks.trial_span(point.id),
                link,
                asked["file"],
                marked=bool(workload.marks),
            )
    workload.close()
    link.send(kind="bye")


def _settings(
    environ: Mapping[str, str], asked: Mapping[str, Any], threads: int
) -> protocol.Settings:
    """The coordinator's settings, with this stream's device and threads."""
    settings = protocol.settings_from(environ)
    spec = settings.spec._replace(
        device=asked["device"] or settings.spec.device, threads=settings.spec.threads or threads
    )
    return settings._replace(spec=spec, rank=None, local_rank=int(asked["index"]))


def _run(
    action: Any, window: Mapping[str, Any], span: Any, link: Link, path: str, *, marked: bool
) -> None:
    """Run batches without a pause; those that start inside the window are kept (DeepSparse's rule,
    see worker.py).
    """
    prepare, run, synchronise = action
    opens, closes = int(window["opens_ns"]), int(window["closes_ns"])
    sleep(max(0.0, (int(window["starts_ns"]) - perf_counter_ns()) / 1e9))
    times = array.array("q")
    reported = False
    while True:
        inputs = prepare()
        synchronise()
        start = perf_counter_ns()
        if marked and opens <= start < closes:
            with span(len(times) // 2):
                run(inputs)
                synchronise()
        else:
            run(inputs)
            synchronise()
        stop = perf_counter_ns()
        if opens <= start < closes:
            times.append(start)
            times.append(stop - start)
        if stop < closes:
            continue
        if not reported:
            _keep(times, path)
            link.send(kind="done", batches=len(times) // 2)
            reported = True
        if link.told_to_stop():
            link.receive()
            return


def _keep(times: "array.array[int]", path: str) -> None:
    if sys.byteorder == "big":
        times.byteswap()  # the file is little-endian everywhere
    with open(path, "wb") as file:
        times.tofile(file)


def main(environ: Mapping[str, str]) -> int:
    """Exit status: 0, 1 broken, 2 usage, 3 missing, 4 bad input, as the scan workers have them."""
    link = Link(int(environ["PROFHARNESS_STREAM_FD"]))
    try:
        lifetime.guard(lifetime.Harness(os.getppid()))
        serve(environ, link)
    except protocol.Refusal as refusal:
        link.send(
            kind="refused", error=refusal.message, hint=refusal.hint, exit_status=refusal.code
        )
        return refusal.code
    except lifetime.Stopped as stopped:
        return stopped.status
    except Exception as error:  # whatever the framework raises is this stream's answer
        link.send(kind="failed", error=protocol.one_sentence(error))
        raise
    return 0


if __name__ == "__main__":
    sys.exit(main(os.environ))
