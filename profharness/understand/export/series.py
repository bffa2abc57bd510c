"""The telemetry of a run, or of files of samplers, as time series in OpenMetrics text: one family
after the other, in it one host and device after the other, with stamps that rise.

A file is written as it is read, so that neither the samples nor the text are ever whole in memory.
Stamps are seconds since 1970 by each node's own clock, which stood so many ns before
CLOCK_MONOTONIC when its sampling began: a clock that is set meanwhile moves none of them. They are
whole milliseconds, as databases keep them; of several samples in one, the first stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import numpy as np

from profharness.errors import InputError
from profharness.rundir import clock_files, telemetry_files
from profharness.rundir.foreign.inside import Inside
from profharness.rundir.manifest import Manifest
from profharness.rundir.series.kept import ColumnSamples, KeptColumn, KeptSamples, kept_samples
from profharness.trace.series.names import Series, device_labels, series_of
from profharness.understand.export.lines import head_of, labels_of

if TYPE_CHECKING:
    from profharness.trace.model import F64, I64

_AT_ONCE = 10_000  # lines


@dataclass(frozen=True)
class Sampled:
    """The files of a run's samplers, and what to add to CLOCK_MONOTONIC of each, by host."""

    files: tuple[KeptSamples, ...]
    to_realtime_ns: dict[str, int]
    left_out: tuple[str, ...] = ()


def of_run(root: Path, manifest: Manifest) -> Sampled:
    """The telemetry of a run; hosts whose clocks nobody read are left out, in words."""
    paths = telemetry_files.found_in(Inside(root)).paths
    clocks: dict[str, int] = {}
    for reading in manifest.clocks:
        clocks.setdefault(reading.host, reading.realtime_ns - reading.monotonic_ns)
    return _sampled(paths, clocks)


def of_files(paths: Sequence[Path]) -> Sampled:
    """The telemetry among loose files, with the clock readings that lie beside it."""
    return _sampled([path for path in paths if _is_sampled(path)], {})


def _is_sampled(path: Path) -> bool:
    from profharness.rundir import telemetry

    try:
        with path.open("rb") as file:
            return telemetry.sniff(file.read(16), path.name)
    except OSError:
        return False


def _sampled(paths: Sequence[Path], clocks: dict[str, int]) -> Sampled:
    files: list[KeptSamples] = []
    left_out: list[str] = []
    for path in paths:
        try:
            kept = kept_samples(path)
            if kept.host not in clocks:
                beside = clock_files.read_clocks(path.with_name(f"{kept.host}.clocks.jsonl"))
                clocks[kept.host] = beside[0].realtime_ns - beside[0].monotonic_ns
        except (InputError, OSError, IndexError) as error:
            left_out.append(f"telemetry of {path.name} is left out: {error or 'no clock reading'}")
            continue
        files.append(kept)
    return Sampled(tuple(files), clocks, tuple(left_out))


def write_series(sampled: Sampled, out: TextIO) -> list[str]:
    """Write all families; sentences on files that could not be read to their end."""
    trouble: list[str] = []
    given: set[str] = set()
    for family, members in _families(sampled).items():
        series = members[0][0]
        out.write(head_of(family, series.kind, series.unit, series.help))
        for place in dict.fromkeys(place for _, place, _ in members):
            kept = sampled.files[place]
            offset = sampled.to_realtime_ns[kept.host]
            try:
                with kept.opened() as opened:
                    for one, at, column in members:
                        start = _start(one, kept.host, column)
                        if at != place or start in given:
                            continue
                        given.add(start)
                        out.writelines(_lines(start, one, opened.of(column), offset))
            except InputError as error:
                trouble.append(f"telemetry of {kept.path.name} is incomplete: {error}")
    return list(dict.fromkeys(trouble))


def _families(sampled: Sampled) -> dict[str, list[tuple[Series, int, KeptColumn]]]:
    """The columns of all files by the names of their families: series, file and column."""
    found: dict[str, list[tuple[Series, int, KeptColumn]]] = {}
    for place, kept in enumerate(sampled.files):
        for column in kept.columns:
            vendor = "" if column.device is None else column.device.vendor or "other"
            series = series_of(column.metric, vendor)
            if series is not None:
                found.setdefault(series.family, []).append((series, place, column))
    return found


def _start(series: Series, host: str, column: KeptColumn) -> str:
    labels = {**dict(series.labels), "host": host, **device_labels(column.device)}
    return f"{series.sample}{labels_of(labels)}"


def _lines(start: str, series: Series, samples: ColumnSamples, offset: int) -> Iterator[str]:
    """The lines of one label set, some thousands at a time."""
    values, stamps = _values(series, samples), (samples.until_ns + offset) // 1_000_000
    newest = np.maximum.accumulate(np.concatenate([np.full(1, -1, np.int64), stamps]))[:-1]
    kept = (stamps > newest) & np.isfinite(values)
    values, stamps = values[kept], stamps[kept]
    for begin in range(0, len(values), _AT_ONCE):
        part = slice(begin, begin + _AT_ONCE)
        yield "".join(
            f"{start} {value!r} {stamp // 1000}.{stamp % 1000:03d}\n"
            for value, stamp in zip(values[part].tolist(), stamps[part].tolist(), strict=True)
        )


def _values(series: Series, samples: ColumnSamples) -> F64:
    if not series.summed:
        return samples.value * series.scale
    length: I64 = samples.until_ns - samples.at_ns
    if not length.any():
        return np.full(len(length), np.nan)  # instants alone, which are no amount
    amounts: F64 = np.cumsum(samples.value * length) * (series.scale / 1e9)
    return amounts
