"""The sampler's files: `<host>.samples.bin` as it is written, and `<host>.parquet` as it is kept.

The binary form describes itself: 8 bytes "PHTELEM1", the header's length (uint32, then 4 zero
bytes), a JSON header, and rows of fixed size (`telemetry_rows`). A value column is an instant (raw
× scale), a counter (growth × scale per second, which holds from one row to the next that has it), a
share of another counter's growth, or status bits (`telemetry_samples`). Times are CLOCK_MONOTONIC,
half-way between the stamps before and after the read; a source that gives its own time stamps
CLOCK_BOOTTIME, which is brought to CLOCK_MONOTONIC by the row's own pair of both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from profharness.errors import InputError
from profharness.rundir.blocks import Blocks, is_empty
from profharness.rundir.foreign.border import DAMAGED, reading
from profharness.rundir.foreign.limits import (
    INFLATED_BYTES,
    INFLATED_RATIO,
    SMALL_BYTES,
    TELEMETRY_VALUES,
    VALUES_GROWTH,
)
from profharness.rundir.foreign.parquet import Kinds, table_of
from profharness.rundir.foreign.records import check_numbers
from profharness.rundir.foreign.small_files import read_file
from profharness.rundir.telemetry_rows import (
    FIXED_BYTES,
    MAGIC,
    MISSING,
    Header,
    Rows,
    SampledDevice,
    read_header,
    without_empty_rows,
)
from profharness.rundir.telemetry_samples import samples_of
from profharness.trace.columns.table import NULL
from profharness.trace.device_counters import RAW, with_figures
from profharness.trace.model import (
    I32,
    I64,
    ClockDomain,
    Device,
    Problem,
    Samples,
    Source,
    Strings,
    Trace,
)
from profharness.trace.wanted import Wanted

name = "telemetry"

PARQUET_MAGIC = b"PAR1"
PARQUET_KEY = b"profharness.telemetry"
# what decoding a file beside raises where it is missing, damaged, or no ordinary file
UNREAD = (OSError, InputError, msgspec.DecodeError, UnicodeDecodeError, RecursionError)
NOT_SAMPLED = " was not sampled: "
"""What stands between a metric and the reason in the problem that tells of it."""
_COLUMNS: dict[str, Kinds] = {
    "at_ns": ("int64",),
    "until_ns": ("int64",),
    "device": ("int32",),
    "metric": ("dictionary<values=string, indices=int32, ordered=0>",),
    "value": ("double",),
}


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
    """By the magic; Parquet files are ours only by their name, since their description stands at
    their end.
    """
    return head.startswith(MAGIC) or (head.startswith(PARQUET_MAGIC) and name.endswith(".parquet"))


def read(path: Path, *, wanted: Wanted = Wanted.ALL) -> Trace:  # noqa: ARG001  all of it is read
    """The samples of one host, plain or gzipped; a file that was cut in the middle of a row is read
    up to it. Hardware counters of devices come as the figures that follow from them.

    Raises InputError when it is missing, not of this format, of a newer version, or cut within its
    header.
    """
    return with_figures(read_raw(path))


def read_raw(path: Path) -> Trace:
    """The same with the hardware counters as they were counted, to be kept: formulas may be
    corrected later.
    """
    with reading(path):
        data = _bytes(path)
        return (_read_parquet if data.startswith(PARQUET_MAGIC) else _read_rows)(path, data)


def _bytes(path: Path) -> bytes:
    """The file, unfolded where it is gzipped; of rows, up to a block of nothing but zeros, as a
    crash of the machine leaves them: a row begins with its time. Raises InputError where it unfolds
    to more than samples do.
    """
    most = INFLATED_BYTES + INFLATED_RATIO * path.stat().st_size
    found: list[bytes] = []
    for block in Blocks(path):
        found.append(block)
        most -= len(block)
        if found[0].startswith(MAGIC) and is_empty(block):
            break
        if most < 0:
            raise InputError(f"{path} unfolds to more than samples of a sampler do", DAMAGED)
    return b"".join(found)


def read_tail(path: Path, rows: int) -> Trace:
    """The last rows of a plain file that still grows, without reading the others. Raises InputError
    as `read` does.
    """
    try:
        with path.open("rb") as file:
            data = file.read(FIXED_BYTES)
            data += file.read(int.from_bytes(data[8:12], "little"))
            header, start = read_header(data, path)
            width = header.width
            whole = (path.stat().st_size - start) // width
            file.seek(start + max(whole - rows, 0) * width)
            return with_figures(_read_rows(path, data + file.read(rows * width)))
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror or error}", "the sampler has not begun yet"
        ) from error


def _read_rows(path: Path, data: bytes) -> Trace:
    header, start = read_header(data, path)
    data, unwritten = without_empty_rows(header, data, start)
    rows = Rows(header, data, start)
    if rows.most_values > TELEMETRY_VALUES + VALUES_GROWTH * path.stat().st_size:
        raise InputError(f"{path} holds more values than a sampler's file of its size", DAMAGED)
    problems = list(_problems(path, rows))
    if unwritten:
        problems.append(
            Problem(
                "warning",
                str(path),
                unwritten,
                "rows hold nothing but zeros, as a crash of the machine leaves them: left out",
            )
        )
    strings = Strings()
    samples, fallen = samples_of(rows, strings)
    if fallen:
        problems.append(
            Problem(
                "warning",
                str(path),
                fallen,
                "counters went backwards: no value for these intervals",
            )
        )
    source = _source(path, rows)
    source = replace(source, details=(*source.details, *_idle(path), *_ended(path)))
    return Trace(
        (source,),
        strings,
        _devices(header.devices, header.host),
        samples=samples,
        problems=tuple(problems),
    )


def _problems(path: Path, rows: Rows) -> Iterator[Problem]:
    where = str(path)
    if rows.rest:
        yield Problem(
            "info", where, 1, "the last row was cut off: the sampler was killed as it wrote"
        )
    if not len(rows):
        yield Problem("warning", where, 1, "holds no sample: the sampler ended in its first second")
        return
    missed = _missed(rows)
    if missed:
        yield Problem(
            "warning",
            where,
            missed,
            f"a tick came too late and was skipped, of {missed + len(rows)} ticks",
        )
    for absent in rows.header.missing:
        yield Problem("info", where, 1, f"{absent.metric}{NOT_SAMPLED}{absent.why}")


def _missed(rows: Rows) -> int:
    """Ticks that were skipped. A row that names more than weeks of them was damaged, and is left
    out: a sum of such numbers runs over, and is negative.
    """
    missed = rows.role("missed")
    return int(missed[(missed >= 0) & (missed <= 1 << 32)].sum())


def _source(path: Path, rows: Rows) -> Source:
    header = rows.header
    details = [("hz", f"{header.hz:g}"), ("rows", str(len(rows))), *_rates(header)]
    if len(rows):
        details.append(("missed", str(_missed(rows))))
        half, most = np.percentile(_lateness(rows), (50, 99))
        details.append(("late_p50_ns", str(int(half))))
        details.append(("late_p99_ns", str(int(most))))
    details += [(f"missing.{absent.metric}", absent.why) for absent in header.missing]
    details += header.details
    for device in header.devices:
        facts = (("package", device.package), ("power_scope", device.scope), ("mode", device.mode))
        details += [(f"{fact}.{device.identity}", text) for fact, text in facts if text]
    details += _costs(rows) if len(rows) else []
    return Source(
        path=str(path),
        format=name,
        clock=ClockDomain.MONOTONIC,
        host=header.host,
        pid=header.pid,
        layer=name,
        tool_version=header.profharness,
        has_host_calls=False,
        details=tuple(details),
    )


def _rates(header: Header) -> tuple[tuple[str, str], ...]:
    """Of the metrics that are read less often than `hz`: their own rate."""
    slower = {source: rate for source, rate in header.rates.items() if rate < header.hz}
    return tuple(
        dict.fromkeys(
            (f"hz.{column.metric}", f"{slower[column.source]:g}")
            for column in header.columns
            if column.metric and column.source in slower and column.metric.partition(":")[0] != RAW
        )
    )


def _idle(path: Path) -> tuple[tuple[str, str], ...]:
    """When the harness let the devices rest before the workload began (`<host>.idle.json`),
    CLOCK_BOOTTIME ns.
    """
    beside = path.with_name(f"{path.name.removesuffix('.samples.bin')}.idle.json")
    try:
        found = msgspec.json.decode(read_file(beside, SMALL_BYTES), type=_Idle)
        check_numbers(found, str(beside))
    except UNREAD:
        return ()
    return ("idle_start_ns", str(found.start_boot_ns)), ("idle_end_ns", str(found.end_boot_ns))


class _Idle(msgspec.Struct, frozen=True):
    start_boot_ns: int
    end_boot_ns: int


def _ended(path: Path) -> tuple[tuple[str, str], ...]:
    """The sampler's own account at its end (`<host>.done.json`): what sources say of themselves,
    and those whose reads failed with how often, and why last.
    """
    beside = path.with_name(f"{path.name.removesuffix('.samples.bin')}.done.json")
    try:
        found = msgspec.json.decode(read_file(beside, SMALL_BYTES), type=_Done)
    except UNREAD:
        return ()
    failed = (
        (f"failed.{one.source}", f"{one.count} {'read' if one.count == 1 else 'reads'}: {one.last}")
        for one in found.failed
    )
    return (*found.details, *failed)


class _Failure(msgspec.Struct, frozen=True):
    source: str
    count: int
    last: str


class _Done(msgspec.Struct, frozen=True):
    failed: tuple[_Failure, ...] = ()
    details: tuple[tuple[str, str], ...] = ()


def _costs(rows: Rows) -> list[tuple[str, str]]:
    """What a read of each source took, in ns: median over the rows in which it was read."""
    found = []
    for source in dict.fromkeys(column.source for column in rows.header.columns if column.source):
        before, after = rows.role("before", source), rows.role("after", source)
        read = (after - before)[after != MISSING]
        if len(read):
            found.append((f"read_p50_ns.{source}", str(int(np.median(read)))))
    return found


def _lateness(rows: Rows) -> I64:
    """From each row's deadline to its first read, in ns, where there was one."""
    before = rows.role("before")
    late = (before - rows.role("deadline"))[before != MISSING]
    return late if len(late) else np.zeros(1, np.int64)


def _devices(devices: tuple[SampledDevice, ...], host: str) -> tuple[Device, ...]:
    return tuple(
        Device(device.number, host, device.identity, device.name, device.vendor)
        for device in devices
    )


def _read_parquet(path: Path, data: bytes) -> Trace:
    table = table_of(data, path, _COLUMNS, "a telemetry table of profharness")
    try:
        facts = msgspec.json.decode((table.schema.metadata or {})[PARQUET_KEY], type=ParquetFacts)
    except (KeyError, *UNREAD) as error:
        raise InputError(
            f"{path} is no telemetry table of profharness ({error})",
            "name a file from a run's telemetry folder",
        ) from error
    columns: list[Any] = [table.column(wanted).combine_chunks() for wanted in _COLUMNS]
    at, until, device, metric, value = columns
    places = device.to_numpy()
    if len(places) and not -1 <= places.min() <= places.max() < len(facts.devices):
        raise InputError(f"{path}: it has samples of a device that it does not name", DAMAGED)
    strings = Strings()
    codes: I32 = strings.codes(metric.dictionary.to_pylist())
    samples = Samples.build(
        len(at),
        at_ns=at.to_numpy(),
        until_ns=until.to_numpy(),
        device=places,
        metric=codes[metric.indices.to_numpy()] if len(codes) else np.zeros(0, np.int32),
        value=value.to_numpy(),
        source=0 if len(at) else NULL,
    )
    source = Source(
        str(path),
        name,
        ClockDomain(facts.clock),
        facts.host,
        pid=facts.pid,
        layer=name,
        tool_version=facts.tool_version,
        has_host_calls=False,
        details=facts.details,
    )
    problems = tuple(
        Problem(severity, str(path), count, message)
        for severity, _, count, message in facts.problems
    )
    return Trace(
        (source,), strings, _devices(facts.devices, facts.host), samples=samples, problems=problems
    )
