"""AMD devices through AMD's own library and its Python package (extra `amd`): a second opinion,
asked for by name.

A package that does not fit the driver's library fails at import with KeyError or AttributeError,
prints to stdout, gives wrong values, or ends the process inside a call, at once or hours later. So
the library lives in a child of the sampler (`smi_child`), its first values are held against our
own reading of sysfs, and that reader stands by: it takes over where the child gives nothing, and
when it dies.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from math import isnan
from typing import Any

from profharness.telemetry.records import FLOAT_MISSING, INTEGER_MISSING
from profharness.telemetry.sources import Column, Missing, SampledDevice, Source, Target
from profharness.telemetry.sources.absent import AbsentSource
from profharness.telemetry.sources.amd import family as amd
from profharness.telemetry.sources.amd.devices import Die, find_dies
from profharness.telemetry.sources.amd.files import AmdFallbackSource
from profharness.telemetry.sources.amd.metrics import PACKAGE_METRICS, AmdMetricsSource, sampled
from profharness.telemetry.sources.amd.smi_child import row_struct

START_S = 20.0
ANSWER_NS = 5_000_000_000
_CHILD = (
    "import sys; sys.path.insert(0, {!r}); from "
    "profharness.telemetry.sources.amd.smi_child import main; sys.exit(main())"
)
_COMPARED = {"power_w": 30.0, "temperature_hotspot": 15.0, "clock_memory": 200.0}
"""Metrics that change slowly, and by how much more than a quarter two readings of one instant may
differ.
"""


class ChildEndedError(Exception):
    """The process that holds the library is gone, or does not answer."""


class AmdsmiSource:
    """All devices of the library. The row that a read gives was asked for by the read before:
    nothing is waited for.
    """

    name = "amdsmi"

    def __init__(
        self, child: subprocess.Popen[bytes], hello: dict[str, Any], dies: Sequence[Die]
    ) -> None:
        joined = _joined([SampledDevice(**source["device"]) for source in hello["sources"]], dies)
        self.devices = tuple(device for device, _ in joined)
        columns_and_dies = [
            (Column(**{**column, "device": place}), joined[place][1])
            for place, source in enumerate(hello["sources"])
            for column in source["columns"]
        ]
        # the library repeats a package's power for each of its partitions: it counts once
        kept = [
            place
            for place, (column, die) in enumerate(columns_and_dies)
            if column.metric not in PACKAGE_METRICS or die is None or die.reports_package
        ]
        self._kept = tuple(place + 1 for place in kept)  # behind the status byte
        self.columns: tuple[Column, ...] = tuple(columns_and_dies[place][0] for place in kept)
        self.max_hz = min((source["max_hz"] for source in hello["sources"]), default=1.0)
        self.ended = ""
        self._child = child
        self._missing = tuple(Missing(**absent) for absent in hello["missing"])
        self._packed = row_struct([column for column, _ in columns_and_dies])
        self._waiting = b""
        self._asked_ns = 0

    def probe(self) -> tuple[Missing, ...]:
        """Asks for the first row, so that the first read has one."""
        self._ask()
        return self._missing

    def read(self, row: list[int | float], at: int) -> None:
        """Raises ChildEndedError once; afterwards there is nothing any more, and the reader that
        stands by works.
        """
        if self.ended:
            return
        answer = self._answer()
        if answer is not None:
            self._ask()
            if answer[0]:
                row[at : at + len(self._kept)] = [answer[place] for place in self._kept]

    def first(self) -> list[int | float]:
        """The first row, waited for. Raises ChildEndedError."""
        end = time.monotonic() + ANSWER_NS / 1e9
        while time.monotonic() < end:
            select.select([_out(self._child)], [], [], 0.1)
            if (answer := self._answer()) is not None:
                self._ask()
                return [answer[place] for place in self._kept]
        raise self._over("does not answer")

    def close(self) -> None:
        """End the child."""
        self.ended = self.ended or _put_away(self._child, "it was closed")

    def _ask(self) -> None:
        assert self._child.stdin is not None
        try:
            os.write(self._child.stdin.fileno(), b"r")
        except OSError as error:
            raise self._over(f"closed its input ({error.strerror})") from error
        self._asked_ns = time.monotonic_ns()

    def _answer(self) -> tuple[int | float, ...] | None:
        """The child's next row; None where it has not come yet."""
        try:
            data = os.read(_out(self._child), self._packed.size - len(self._waiting))
        except BlockingIOError:
            if time.monotonic_ns() - self._asked_ns > ANSWER_NS:
                raise self._over(f"did not answer within {ANSWER_NS / 1e9:g} s") from None
            return None
        if not data:
            raise self._over("")
        self._waiting += data
        if len(self._waiting) < self._packed.size:
            return None
        whole, self._waiting = self._waiting, b""
        return self._packed.unpack(whole)

    def _over(self, why: str) -> ChildEndedError:
        self.ended = _ending(self._child, why)
        return ChildEndedError(self.ended)


class Standby:
    """A source that is read only once another one has ended."""

    def __init__(self, inner: Source, has_ended: Callable[[], bool]) -> None:
        self.name = inner.name
        self.max_hz = inner.max_hz
        self.columns: tuple[Column, ...] = ()
        self.devices: tuple[SampledDevice, ...] = ()
        self._inner = inner
        self._has_ended = has_ended

    def probe(self) -> tuple[Missing, ...]:
        """Ask the source that this one stands in for; its columns become ours."""
        missing = self._inner.probe()
        self.columns, self.devices, self.max_hz = (
            self._inner.columns,
            self._inner.devices,
            self._inner.max_hz,
        )
        return missing

    def read(self, row: list[int | float], at: int) -> None:
        if self._has_ended():
            self._inner.read(row, at)


def open_sources(target: Target) -> tuple[Source, ...]:
    """The library with our own reader behind it; our own reader alone, and why, where the library
    gives nothing.
    """
    dies = find_dies(target.sysfs)
    own_sources = amd.open_sources(target) if dies else ()
    started = _started(dies)
    if isinstance(started, str):
        return (AbsentSource("amdsmi", started), *own_sources)
    library: AmdsmiSource = started
    return (
        library,
        *(
            Standby(source, lambda: bool(library.ended))
            if isinstance(source, (AmdMetricsSource, AmdFallbackSource))
            else source
            for source in own_sources
        ),
    )


def _started(dies: Sequence[Die]) -> AmdsmiSource | str:
    """The library in its child, after its first values were compared with ours; or why it cannot be
    used.
    """
    root = os.path.abspath(__file__)  # noqa: PTH100 - no pathlib in the sampler
    for _ in range(5):  # profharness/telemetry/sources/amd/smi.py
        root = os.path.dirname(root)  # noqa: PTH120 - no pathlib in the sampler
    child = subprocess.Popen(
        [sys.executable, "-c", _CHILD.format(root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
    )
    hello = _read_hello(child)
    if isinstance(hello, str):
        return hello
    os.set_blocking(_out(child), False)
    source = AmdsmiSource(child, hello, dies)
    if not source.columns:
        return _ending(child, "") if child.poll() else _put_away(child, _nothing(source.probe()))
    try:
        source.probe()
        first = source.first()
    except ChildEndedError as ended:
        return str(ended)
    why = _disagreement(source, first, dies)
    return _put_away(child, why) if why else source


def _read_hello(child: subprocess.Popen[bytes]) -> dict[str, Any] | str:
    """The child's first line, or why there is none."""
    text, end = b"", time.monotonic() + START_S
    while not text.endswith(b"\n"):
        if not select.select([_out(child)], [], [], max(end - time.monotonic(), 0))[0]:
            return _put_away(child, f"AMD's library did not answer within {START_S:g} s")
        data = os.read(_out(child), 65536)
        if not data:
            return _ending(child, "")
        text += data
    hello: dict[str, Any] = json.loads(text)
    return _put_away(child, str(hello["why"])) if "why" in hello else hello


def _nothing(missing: Sequence[Missing]) -> str:
    """A library that is older than the driver's tables answers everything with 'N/A'."""
    return "AMD's library gives no value here: " + (
        "; ".join(dict.fromkeys(absent.why for absent in missing)) or "it finds no device"
    )


def _disagreement(source: AmdsmiSource, first: Sequence[int | float], dies: Sequence[Die]) -> str:
    """Where the library and our own reading of the same instant differ widely: a package that is
    older than its library misreads structures.
    """
    own_values: dict[tuple[str, str], float] = {}
    for address in dict.fromkeys(die.address for die in dies):
        reader = AmdMetricsSource(tuple(die for die in dies if die.address == address))
        reader.probe()
        try:
            own_values |= {
                (reader.devices[0].identity, metric): value
                for metric, value in reader.instants().items()
            }
        except (OSError, ValueError):
            continue  # nothing to compare with
    for key, value in _values(source, first).items():
        own_value, slack = own_values.get(key), _COMPARED.get(key[1])
        if (
            own_value is not None
            and slack is not None
            and abs(value - own_value) > slack + 0.25 * own_value
        ):
            return (
                "the amdsmi package does not fit AMD's library: "
                f"{key[1]} of {key[0]} is {value:g} by the library and {own_value:g} by the "
                "driver's own table"
            )
    return ""


def _values(source: Source, row: Sequence[int | float]) -> dict[tuple[str, str], float]:
    return {
        (source.devices[column.device].identity, column.metric): raw * column.scale
        for column, raw in zip(source.columns, row, strict=True)
        if column.metric and raw not in (INTEGER_MISSING, FLOAT_MISSING) and not isnan(raw)
    }


def _joined(
    devices: Sequence[SampledDevice], dies: Sequence[Die]
) -> list[tuple[SampledDevice, Die | None]]:
    """The library's devices as sysfs names them, by PCI address; partitions of one address in their
    order.
    """
    left = list(dies)
    joined: list[tuple[SampledDevice, Die | None]] = []
    for device in devices:
        die = next((candidate for candidate in left if candidate.address == device.identity), None)
        if die is not None:
            left.remove(die)
        joined.append((device if die is None else sampled(die), die))
    return joined


def _out(child: subprocess.Popen[bytes]) -> int:
    assert child.stdout is not None
    return child.stdout.fileno()


def _put_away(child: subprocess.Popen[bytes], why: str) -> str:
    child.kill()
    child.wait()
    return why


def _ending(child: subprocess.Popen[bytes], why: str) -> str:
    """How it ended, in words."""
    try:
        status = child.wait(1.0)
    except subprocess.TimeoutExpired:
        return _put_away(
            child, f"AMD's library {why or 'closed its output'}: its process was ended"
        )
    if status < 0:
        return (
            f"AMD's library ended the process that held it ({signal.Signals(-status).name}): "
            "it does not fit this driver"
        )
    return f"the process that held AMD's library ended with status {status}"
