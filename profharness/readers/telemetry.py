"""The sampler's files: `<host>.samples.bin` as it is written, `<host>.parquet` as it is kept, and `<host>.clocks.jsonl`.

The binary form describes itself: 8 bytes "PHTELEM1", the header's length (uint32, then 4 zero bytes), a JSON header, and rows
of 8-byte fields, one per column of the header. A value column is an instant (raw × scale) or a counter
(growth × scale per second, which holds from one row to the next that has it). Times are CLOCK_MONOTONIC, half-way
between the stamps before and after the read; a source that gives its own time stamps CLOCK_BOOTTIME,
which is brought to CLOCK_MONOTONIC by the row's own pair of both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from profharness.errors import InputError
from profharness.readers.files import Blocks
from profharness.trace.clocks import Snapshot
from profharness.trace.model import F64, I32, I64, NULL, ClockDomain, Device, Problem, Samples, Source, Strings, Trace

name = "telemetry"

MAGIC = b"PHTELEM1"
VERSION = 1
PARQUET_MAGIC = b"PAR1"
PARQUET_KEY = b"profharness.telemetry"
_FIXED_BYTES = 16
_MISSING = -1
Rows = npt.NDArray[np.int64]


class Column(msgspec.Struct, frozen=True):
    """One field of a row; see `profharness.telemetry.records` for the roles."""

    role: Literal["deadline", "boot", "missed", "before", "after", "stamp", "value"]
    type: Literal["q", "d"]
    source: str = ""
    metric: str = ""
    unit: str = ""
    form: Literal["instant", "counter"] = "instant"
    scale: float = 1.0
    device: int = -1


class SampledDevice(msgspec.Struct, frozen=True):
    """An accelerator that a source read. `package` is the identity of the device that reports power for it."""

    number: str
    identity: str = ""
    name: str = ""
    vendor: str = ""
    package: str = ""
    scope: str = ""
    mode: str = ""


class Absent(msgspec.Struct, frozen=True):
    """A metric that could not be had, and why."""

    metric: str
    why: str


class Header(msgspec.Struct, frozen=True):
    """What the sampler wrote about its rows."""

    v: int
    host: str
    hz: float
    columns: tuple[Column, ...]
    pid: int | None = None
    profharness: str = ""
    boot_id: str = ""
    period_ns: int = 0
    devices: tuple[SampledDevice, ...] = ()
    missing: tuple[Absent, ...] = ()


class ParquetFacts(msgspec.Struct, frozen=True):
    """What `writers.telemetry_parquet` keeps beside the table."""

    v: int
    host: str = ""
    clock: str = "monotonic"
    pid: int | None = None
    tool_version: str = ""
    details: tuple[tuple[str, str], ...] = ()
    devices: tuple[SampledDevice, ...] = ()
    problems: tuple[tuple[Literal["info", "warning", "error"], str, int, str], ...] = ()


def sniff(head: bytes, name: str) -> bool:
    """By the magic; Parquet files are ours only by their name, since their description stands at their end."""
    return head.startswith(MAGIC) or (head.startswith(PARQUET_MAGIC) and name.endswith(".parquet"))


def read(path: Path, *, ops: bool = True) -> Trace:  # noqa: ARG001 - part of the contract; there are no operators here
    """The samples of one host, plain or gzipped; a file that was cut in the middle of a row is read up to it.

    Raises InputError when it is missing, not of this format, of a newer version, or cut within its header.
    """
    data = b"".join(Blocks(path))
    return _read_parquet(path, data) if data.startswith(PARQUET_MAGIC) else _read_rows(path, data)


def read_tail(path: Path, rows: int) -> Trace:
    """The last rows of a plain file that still grows, without reading the others. Raises InputError as `read` does."""
    try:
        with path.open("rb") as file:
            data = file.read(_FIXED_BYTES)
            data += file.read(int.from_bytes(data[8:12], "little"))
            header, start = _header(data, path)
            width = 8 * len(header.columns)
            whole = (path.stat().st_size - start) // width
            file.seek(start + max(whole - rows, 0) * width)
            return _read_rows(path, data + file.read(rows * width))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}", "the sampler has not begun yet") from error


def _read_rows(path: Path, data: bytes) -> Trace:
    header, start = _header(data, path)
    width = len(header.columns)
    count = (len(data) - start) // (8 * width)
    rows = np.frombuffer(data, "<i8", count * width, start).reshape(count, width)
    problems = list(_problems(path, header, rows, (len(data) - start) % (8 * width)))
    strings = Strings()
    samples, fallen = _samples(header, rows, strings)
    if fallen:
        problems.append(Problem("warning", str(path), fallen, "counters went backwards: no value for these intervals"))
    source = _source(path, header, rows)
    source = replace(source, details=(*source.details, *_idle(path)))
    return Trace((source,), strings, _devices(header.devices, header.host), samples=samples,
                 problems=tuple(problems))


def _header(data: bytes, path: Path) -> tuple[Header, int]:
    """The header and where the rows begin."""
    length = int.from_bytes(data[8:12], "little")
    if not data.startswith(MAGIC) or len(data) < _FIXED_BYTES + length:
        raise InputError(f"{path} is no telemetry file or is cut within its header", "the sampler was killed as it started")
    try:
        version = msgspec.json.decode(data[_FIXED_BYTES:_FIXED_BYTES + length], type=_VersionOnly).v
        if version > VERSION:
            raise InputError(f"{path}: version {version} is newer than {VERSION}", "update profharness")
        return msgspec.json.decode(data[_FIXED_BYTES:_FIXED_BYTES + length], type=Header), _FIXED_BYTES + length
    except msgspec.DecodeError as error:
        raise InputError(f"{path}: its header is damaged ({error})", "the file was altered after it was written") from error


class _VersionOnly(msgspec.Struct, frozen=True):
    v: int


def _problems(path: Path, header: Header, rows: Rows, rest: int) -> Iterator[Problem]:
    where = str(path)
    if rest:
        yield Problem("info", where, 1, "the last row was cut off: the sampler was killed as it wrote")
    if not len(rows):
        yield Problem("warning", where, 1, "holds no sample: the sampler ended in its first second")
        return
    missed = int(_field(header, rows, "missed").sum())
    if missed:
        yield Problem("warning", where, missed, f"ticks of {missed + len(rows)} came too late and were skipped")
    for absent in header.missing:
        yield Problem("info", where, 1, f"{absent.metric} was not sampled: {absent.why}")


def _field(header: Header, rows: Rows, role: str, source: str = "") -> I64:
    """The first column of that role (and source)."""
    place = next(i for i, column in enumerate(header.columns) if column.role == role and column.source == source)
    return rows[:, place]


def _source(path: Path, header: Header, rows: Rows) -> Source:
    details = [("hz", f"{header.hz:g}"), ("rows", str(len(rows)))]
    if len(rows):
        details.append(("missed", str(int(_field(header, rows, "missed").sum()))))
        details.append(("late_p50_ns", str(int(np.median(_lateness(header, rows))))))
        details.append(("late_p99_ns", str(int(np.percentile(_lateness(header, rows), 99)))))
    details += [(f"missing.{absent.metric}", absent.why) for absent in header.missing]
    for device in header.devices:
        facts = (("package", device.package), ("power_scope", device.scope), ("mode", device.mode))
        details += [(f"{fact}.{device.identity}", text) for fact, text in facts if text]
    details += _costs(header, rows) if len(rows) else []
    return Source(path=str(path), format=name, clock=ClockDomain.MONOTONIC, host=header.host, pid=header.pid, layer=name,
                  tool_version=header.profharness, has_host_calls=False, details=tuple(details))


def _idle(path: Path) -> tuple[tuple[str, str], ...]:
    """When the harness let the devices rest before the workload began (`<host>.idle.json`), CLOCK_BOOTTIME ns."""
    beside = path.with_name(f"{path.name.removesuffix('.samples.bin')}.idle.json")
    try:
        found = msgspec.json.decode(beside.read_bytes(), type=_Idle)
    except (OSError, msgspec.DecodeError):
        return ()
    return ("idle_start_ns", str(found.start_boot_ns)), ("idle_end_ns", str(found.end_boot_ns))


class _Idle(msgspec.Struct, frozen=True):
    start_boot_ns: int
    end_boot_ns: int


def _costs(header: Header, rows: Rows) -> list[tuple[str, str]]:
    """What a read of each source took, in ns: median over the rows in which it was read."""
    found = []
    for place, column in enumerate(header.columns):
        if column.role == "before":
            taken = rows[:, place + 1] - rows[:, place]
            read = taken[rows[:, place + 1] != _MISSING]
            if len(read):
                found.append((f"read_p50_ns.{column.source}", str(int(np.median(read)))))
    return found


def _lateness(header: Header, rows: Rows) -> I64:
    """From each row's deadline to its first read, in ns."""
    first = next(i for i, column in enumerate(header.columns) if column.role == "before")
    return rows[:, first] - _field(header, rows, "deadline")


def _devices(devices: tuple[SampledDevice, ...], host: str) -> tuple[Device, ...]:
    return tuple(Device(device.number, host, device.identity, device.name, device.vendor) for device in devices)


def _samples(header: Header, rows: Rows, strings: Strings) -> tuple[Samples, int]:
    """All value columns as samples, by metric, and the number of counters' steps that went backwards."""
    parts: list[tuple[I64, I64, F64, int, int]] = []
    fallen = 0
    for place, column in enumerate(header.columns):
        if column.role != "value":
            continue
        raw = rows[:, place]
        present = raw != _MISSING if column.type == "q" else ~np.isnan(raw.view(np.float64))
        at = _times(header, rows, column)[present]
        known = raw[present]
        metric = strings.code(column.metric)
        if column.form == "instant":
            values: F64 = known.astype(np.float64) if column.type == "q" else known.view(np.float64)
            parts.append((at, at, values * column.scale, metric, column.device))
            continue
        growth = np.diff(known) if column.type == "q" else np.diff(known.view(np.float64))
        length = np.diff(at)
        usable = (growth >= 0) & (length > 0)
        fallen += int((growth < 0).sum())
        values = growth[usable].astype(np.float64) * column.scale / (length[usable] / 1e9)
        parts.append((at[:-1][usable], at[1:][usable], values, metric, column.device))
    return _joined(parts), fallen


def _times(header: Header, rows: Rows, column: Column) -> I64:
    """When each row's value was read: the reading's own stamp, else half-way between the stamps around the read."""
    before = _field(header, rows, "before", column.source)
    middle = before + (_field(header, rows, "after", column.source) - before) // 2
    stamp = next((place for place, other in enumerate(header.columns)
                  if (other.role, other.source, other.device) == ("stamp", column.source, column.device)), None)
    if stamp is None:
        return middle
    first = next(i for i, other in enumerate(header.columns) if other.role == "before")
    boot_to_monotonic = rows[:, first] - _field(header, rows, "boot")
    return np.where(rows[:, stamp] == _MISSING, middle, rows[:, stamp] + boot_to_monotonic)


def _joined(parts: list[tuple[I64, I64, F64, int, int]]) -> Samples:
    parts = [part for part in parts if len(part[0])]
    if not parts:
        return Samples.empty()
    at, until, values = (np.concatenate([part[i] for part in parts]) for i in range(3))
    lengths = [len(part[0]) for part in parts]
    return Samples.build(at_ns=at, until_ns=until, value=values, source=0, metric=np.repeat([part[3] for part in parts], lengths),
                         device=np.repeat([part[4] for part in parts], lengths))


def _read_parquet(path: Path, data: bytes) -> Trace:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(pa.BufferReader(data))
        facts = msgspec.json.decode((table.schema.metadata or {})[PARQUET_KEY], type=ParquetFacts)
        columns: list[Any] = [table.column(wanted).combine_chunks() for wanted in ("at_ns", "until_ns", "device", "metric", "value")]
    except (pa.ArrowException, KeyError, OSError, msgspec.DecodeError) as error:
        raise InputError(f"{path} is no telemetry table of profharness ({error})", "name a file from a run's telemetry folder") from error
    at, until, device, metric, value = columns
    strings = Strings()
    codes: I32 = strings.codes(metric.dictionary.to_pylist())
    samples = Samples.build(len(at), at_ns=at.to_numpy(), until_ns=until.to_numpy(), device=device.to_numpy(),
                            metric=codes[metric.indices.to_numpy()] if len(codes) else np.zeros(0, np.int32),
                            value=value.to_numpy(), source=0 if len(at) else NULL)
    source = Source(str(path), name, ClockDomain(facts.clock), facts.host, pid=facts.pid, layer=name,
                    tool_version=facts.tool_version, has_host_calls=False, details=facts.details)
    problems = tuple(Problem(severity, str(path), count, message) for severity, _, count, message in facts.problems)
    return Trace((source,), strings, _devices(facts.devices, facts.host), samples=samples, problems=problems)


def read_clocks(path: Path) -> tuple[Snapshot, ...]:
    """The clock readings of one host (`<host>.clocks.jsonl`), in order; a last line that was cut off is left out.

    Raises InputError when the file is missing or another line is damaged.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}", "without clock readings nothing can be aligned") from error
    decoder = msgspec.json.Decoder(_ClockLine)
    try:
        found = [decoder.decode(line) for line in lines[:-1] if line]
    except msgspec.DecodeError as error:
        raise InputError(f"{path}: a clock reading is damaged ({error})", "the file was altered after it was written") from error
    return tuple(Snapshot(line.host, line.phase, line.boot_ns, line.monotonic_ns, line.monotonic_raw_ns, line.realtime_ns,
                          line.width_ns) for line in found)


class _ClockLine(msgspec.Struct, frozen=True):
    host: str
    phase: str
    boot_ns: int
    monotonic_ns: int
    monotonic_raw_ns: int
    realtime_ns: int
    width_ns: int
