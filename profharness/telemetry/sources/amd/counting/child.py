"""The process that holds rocprofiler-sdk: says on its first line what it counts, then sends one
record per device at each deadline, until its stdin ends.

    stdin    one line of JSON (`Task`), then nothing: its end is the end of the sampler
    stdout   one line of JSON: the SDK's version and the state of each device, or why there is none;
             then records

A record is four int64 (its kind, the device's place in the task, CLOCK_MONOTONIC ns before and
after the call) and a body of as many bytes for all. The body of a sample holds the total of each
column as int64, -1 where it was not read; that of a trouble holds text, ended by zeros. Deadlines
are absolute; those that it is too late for are skipped. Where a call of the library does not come
back, the process still ends two seconds after its stdin.
"""

from __future__ import annotations

import json
import os
import select
import signal
import struct
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from profharness.telemetry.sources.amd.counting.abi import Sdk, SdkError
from profharness.telemetry.sources.amd.counting.service import Counting, Device, Wanted

SAMPLE, TROUBLE = 0, 1
HEAD = struct.Struct("<4q")
LEAST_BODY = 256  # bytes: room for a sentence
LINGER_S = 2.0
_SECOND_NS = 1_000_000_000


class Task(NamedTuple):
    """What is asked of the process: libraries by absolute path, samples per second, devices."""

    sdk: str
    hsa: str
    hz: float
    devices: tuple[Wanted, ...]

    @property
    def body_bytes(self) -> int:
        """Of each record, behind its head."""
        return max([LEAST_BODY, *(8 * len(device.columns) for device in self.devices)])

    def line(self) -> bytes:
        """As it goes over stdin."""
        return json.dumps(self).encode() + b"\n"


def parse_task(line: bytes) -> Task:
    """The other side of `Task.line`."""
    sdk, hsa, hz, devices = json.loads(line)
    return Task(
        sdk,
        hsa,
        hz,
        tuple(
            Wanted(gpu_id, tuple(tuple(block) for block in blocks), tuple(columns))
            for gpu_id, blocks, columns in devices
        ),
    )


def main() -> int:
    """Exit status 0 once stdin ends, 1 where nothing can be counted (the reason stands in the
    line).
    """
    answers = os.dup(1)
    os.dup2(2, 1)  # what libraries print must not stand among the records
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1))
    task = parse_task(sys.stdin.buffer.readline())
    ended, ending = os.pipe()
    threading.Thread(target=_watch, args=(ending,), daemon=True).start()
    try:
        sdk = Sdk(task.sdk)
        counting = Counting(sdk, task.devices)
        counting.start(task.hsa)
    except SdkError as error:
        _say(answers, {"why": str(error)})
        return 1
    hello = {"sdk": sdk.version_text, "devices": [_state(device) for device in counting.devices]}
    try:
        _say(answers, hello)
        _serve(answers, ended, task, sdk, counting.devices)
    except BrokenPipeError:
        pass  # the sampler ended
    counting.stop()
    return 0


def _watch(ending: int) -> None:
    """Wake the loop when stdin ends, and end the process if that does not help."""
    while sys.stdin.buffer.read(1):
        pass
    os.write(ending, b"e")
    time.sleep(LINGER_S)
    os._exit(3)


def _state(device: Device) -> dict[str, Any]:
    return {
        "gpu_id": device.wanted.gpu_id,
        "why": device.why,
        "dropped": list(device.dropped),
    }


def _serve(answers: int, ended: int, task: Task, sdk: Sdk, devices: Sequence[Device]) -> None:
    period_ns = round(_SECOND_NS / task.hz)
    deadline_ns = time.monotonic_ns()
    while True:
        for place, device in enumerate(devices):
            if not device.why:
                os.write(answers, _record(place, device, sdk, task.body_bytes))
        now_ns = time.monotonic_ns()
        deadline_ns += period_ns * (1 + max(now_ns - deadline_ns, 0) // period_ns)
        wait_s = max(deadline_ns - now_ns, 0) / _SECOND_NS
        if select.select([ended], [], [], wait_s)[0]:
            return


def _record(place: int, device: Device, sdk: Sdk, body_bytes: int) -> bytes:
    before_ns = time.monotonic_ns()
    try:
        totals = device.sample(sdk)
    except SdkError as error:
        text = str(error).encode()[:body_bytes]
        head = HEAD.pack(TROUBLE, place, before_ns, time.monotonic_ns())
        return head + text.ljust(body_bytes, b"\0")
    after_ns = time.monotonic_ns()
    body = struct.pack(f"<{len(totals)}q", *totals)
    return HEAD.pack(SAMPLE, place, before_ns, after_ns) + body.ljust(body_bytes, b"\0")


def _say(answers: int, content: dict[str, Any]) -> None:
    os.write(answers, json.dumps(content).encode() + b"\n")
