"""What Triton's perf_analyzer writes: the profile export (JSON, times of every request) and the
report (CSV, one row per level).

The export stamps the wall clock in ns and holds each request's tensors, which are not read. It
includes requests outside the windows that the report rests on; those windows are marks. In the
report times are whole microseconds, rows are sorted by throughput, and levels that did not become
stable are left out without a word: compare with `missing`.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from profharness.errors import InputError
from profharness.readers.bytes.json_scan import NOT_JSON
from profharness.readers.bytes.json_walk import DocumentEnds, JsonWalk
from profharness.readers.bytes.limits import Nanoseconds, finite, loads_of, whole
from profharness.rundir.blocks import Blocks
from profharness.trace.columns.table import NULL
from profharness.trace.model import ClockDomain, Marks, Problem, Requests, Source, Strings, Trace
from profharness.trace.wanted import Wanted

name = "perf_analyzer"

_EXPORT = re.compile(rb'^\s*\{\s*"experiments"\s*:')
_HINT = "perf_analyzer writes it at its end, with --profile-export-file"
_CSV_HINT = "perf_analyzer writes it at its end, with -f"
_RATE_COLUMNS = {"Concurrency": "concurrency", "Request Rate": "rate"}


class _Mode(msgspec.Struct):
    mode: str = ""
    value: float | None = None


class _Request(msgspec.Struct, gc=False):
    timestamp: Nanoseconds
    response_timestamps: list[Nanoseconds] = []


class _Experiment(msgspec.Struct):
    experiment: _Mode = msgspec.field(default_factory=_Mode)
    requests: list[_Request] = []
    window_boundaries: list[Nanoseconds] = []


class _Export(msgspec.Struct):
    experiments: list[_Experiment]
    version: str = ""


def sniff(head: bytes, name: str) -> bool:  # noqa: ARG001  the name says nothing
    """A profile export begins with its list of experiments."""
    return _EXPORT.match(head) is not None


def read(path: Path, *, wanted: Wanted = Wanted.ALL) -> Trace:  # noqa: ARG001  all of it is read
    """Requests of all experiments, each a point named by its load (`concurrency 4`); their windows
    are marks of kind phase.

    A request is intended when it was sent: the export does not say when it was due. One without an
    answer is a failed request that ends when it began. Raises InputError for a damaged or empty
    export.
    """
    export, damaged = _export(path)
    if not any(experiment.requests for experiment in export.experiments):
        raise InputError(f"{path}: a profile export without requests", _HINT)
    if len(export.experiments) > (most := loads_of(path)):
        raise InputError(
            f"{path}: a profile export of {len(export.experiments):,} levels of load, more than "
            f"the {most:,} that one of its size may have",
            "no scan has so many: look at the file",
        )
    strings = Strings()
    points = [strings.code(_label(one.experiment)) for one in export.experiments]
    requests = _requests(export.experiments, points)
    marks = _windows(export.experiments, points, strings)
    lost = sum(
        1
        for experiment in export.experiments
        for request in experiment.requests
        if not request.response_timestamps
    )
    problems = (
        *(
            (Problem("warning", str(path), lost, "requests have no answer in the export"),)
            if lost
            else ()
        ),
        *damaged,
    )
    source = Source(
        path=str(path),
        format=name,
        clock=ClockDomain.REALTIME,
        tool_version=export.version,
        has_host_calls=False,
    )
    return Trace(
        sources=(source,),
        strings=strings,
        requests=requests,
        marks=marks,
        problems=problems,
    )


def _export(path: Path) -> tuple[_Export, tuple[Problem, ...]]:
    """The whole export. Where it is not as expected, it is read again, one request after the
    other, and those that cannot be read are counted.
    """
    blocks = Blocks(path, text=True)
    data = b"".join(blocks)
    try:
        return msgspec.json.decode(data, type=_Export), ()
    except NOT_JSON as error:
        del data
        walk, export = JsonWalk(path), _Export([])
        try:
            for key in walk.members():
                if key == "experiments":
                    export.experiments += [_experiment(walk) for _ in walk.elements()]
                elif key == "version":
                    export.version = walk.value_or(str, "")
                else:
                    walk.skip()
        except DocumentEnds:
            raise InputError(
                f"{path}: not a whole profile export ({blocks.damage or error})", _HINT
            ) from error
        told = f"values are damaged and were left out or repaired (first: {walk.first_error})"
        count = max(walk.unreadable + walk.repaired, 1)
        return export, (Problem("warning", str(path), count, told),)


def _experiment(walk: JsonWalk) -> _Experiment:
    """The experiment at the cursor."""
    found = _Experiment()
    for key in walk.members():
        if key == "experiment":
            found.experiment = walk.value_or(_Mode, _Mode())
        elif key == "requests":
            found.requests += [one for batch in walk.batches(_Request) for one in batch]
        elif key == "window_boundaries":
            found.window_boundaries = walk.value_or(list[Nanoseconds], [])
        else:
            walk.skip()
    return found


def _label(mode: _Mode) -> str:
    return f"{mode.mode.replace('_', ' ')} {mode.value:g}" if mode.value is not None else mode.mode


def _requests(experiments: Sequence[_Experiment], points: Sequence[int]) -> Requests:
    """Those of all experiments in one table: there may be as many experiments as requests."""
    counts = [len(experiment.requests) for experiment in experiments]
    requests = [request for experiment in experiments for request in experiment.requests]
    sent = np.fromiter((request.timestamp for request in requests), np.int64, len(requests))
    done = np.fromiter(
        (
            request.response_timestamps[-1] if request.response_timestamps else NULL
            for request in requests
        ),
        np.int64,
        len(requests),
    )
    return Requests.build(
        len(requests),
        intended_ns=sent,
        sent_ns=sent,
        done_ns=np.where(done == NULL, sent, done),
        think_ns=0,
        point=np.repeat(np.array(points, np.int64), counts),
        ok=(done != NULL).astype(np.int32),
        source=0,
    )


def _windows(experiments: Sequence[_Experiment], points: Sequence[int], strings: Strings) -> Marks:
    starts: list[int] = []
    ends: list[int] = []
    names: list[int] = []
    of_point: list[int] = []
    kind = NULL
    for experiment, point in zip(experiments, points, strict=True):
        edges = experiment.window_boundaries
        starts += edges[:-1]
        ends += edges[1:]
        names += [strings.code(f"window {at}") for at in range(1, len(edges))]
        of_point += [point] * max(0, len(edges) - 1)
        kind = strings.code("phase")
    began = np.array(starts, np.int64)
    return Marks.build(
        len(starts),
        start_ns=began,
        dur_ns=np.array(ends, np.int64) - began,
        name=np.array(names, np.int64),
        kind=kind,
        point=np.array(of_point, np.int64),
        source=0,
    )


@dataclass(frozen=True)
class Level:
    """One row of the report. `mode` is concurrency or rate; `throughput` items/s; times in whole µs
    as printed, None without the column.

    `metrics` are the device columns by name: uuid and value of each GPU.
    """

    mode: str
    value: float
    throughput: float
    client_send_us: int | None
    network_us: int | None
    queue_us: int | None
    compute_input_us: int | None
    compute_infer_us: int | None
    compute_output_us: int | None
    client_receive_us: int | None
    percentiles_us: tuple[tuple[int, int], ...]
    metrics: tuple[tuple[str, tuple[tuple[str, float], ...]], ...] = ()

    @property
    def latency_us(self) -> int | None:
        """Mean latency: the sum of its parts, which the report cuts to whole microseconds each."""
        parts = (
            self.client_send_us,
            self.network_us,
            self.queue_us,
            self.compute_input_us,
            self.compute_infer_us,
            self.compute_output_us,
            self.client_receive_us,
        )
        return None if any(part is None for part in parts) else sum(part or 0 for part in parts)

    def in_flight(self, batch_size: int) -> float | None:
        """Requests in flight by Little's law; of a closed loop it is the concurrency, unless the
        throughput is wrong (`--request-count`).
        """
        latency = self.latency_us
        return None if latency is None else self.throughput / batch_size * latency / 1e6


def read_levels(path: Path) -> tuple[Level, ...]:
    """The rows of a report by load. Raises InputError for a file that is none, naming the column or
    the line.
    """
    damage = Blocks(path, text=True)
    text = b"".join(damage).decode("utf-8-sig", "replace")
    if damage.damage:
        raise InputError(f"{path}: {damage.damage}", _CSV_HINT)
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    columns = set(rows[0]) if rows else set()
    mode = next((column for column in _RATE_COLUMNS if column in columns), None)
    if mode is None or "Inferences/Second" not in columns:
        raise InputError(
            f"{path}: not a report of perf_analyzer (no column Concurrency or Request Rate "
            "beside Inferences/Second)",
            _CSV_HINT,
        )
    levels = []
    for line, row in enumerate(rows, 2):
        try:
            row.pop("", None)  # a comma may end the header, or each row
            if any(row.pop(None, ())) or None in row.values():
                raise ValueError("it has more or fewer cells than the header")
            levels.append(_level(row, mode))
        except (TypeError, ValueError) as error:
            raise InputError(f"{path}: line {line}: {error}", _CSV_HINT) from error
    return tuple(sorted(levels, key=lambda level: level.value))


def _level(row: dict[str, str], mode: str) -> Level:
    percentiles = [
        (_whole(percentile[1]), _whole(row[column]))
        for column in row
        if (percentile := re.fullmatch(r"p(\d+) latency", column))
    ]
    metrics = tuple((column, _per_gpu(row[column])) for column in row if "GPU" in column)
    return Level(
        _RATE_COLUMNS[mode],
        _number(row[mode]),
        _number(row["Inferences/Second"]),
        _us(row, "Client Send"),
        _us(row, "Network+Server Send/Recv"),
        _us(row, "Server Queue"),
        _us(row, "Server Compute Input"),
        _us(row, "Server Compute Infer"),
        _us(row, "Server Compute Output"),
        _us(row, "Client Recv"),
        tuple(percentiles),
        metrics,
    )


def _us(row: dict[str, str], column: str) -> int | None:
    return _whole(row[column]) if row.get(column) else None


def _whole(cell: str) -> int:
    number = whole(cell)
    if number is None or number < 0:
        raise ValueError(f"{cell[:20]!r} is no whole number")
    return number


def _number(cell: str) -> float:
    number = finite(cell)
    if number is None:
        raise ValueError(f"{cell[:20]!r} is no number")
    return number


def _per_gpu(cell: str) -> tuple[tuple[str, float], ...]:
    """`uuid:value;uuid:value;`"""
    parts = (part.rpartition(":") for part in cell.split(";") if part)
    return tuple((uuid, _number(value)) for uuid, _, value in parts)


def missing(asked: Iterable[float], levels: Iterable[Level]) -> tuple[float, ...]:
    """Loads that were asked for and have no row: the level did not become stable, and the scan
    ended there with status 0.
    """
    measured = [level.value for level in levels]
    return tuple(
        value
        for value in asked
        if not any(math.isclose(value, other, rel_tol=1e-6) for other in measured)
    )
