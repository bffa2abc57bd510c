"""Telemetry of a run as OpenMetrics: every sample, at its time, read back by the strict parser."""

from __future__ import annotations

import io
import tracemalloc
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from profharness.rundir import telemetry
from profharness.rundir.paths import RunDir
from profharness.rundir.series.kept import kept_samples
from profharness.telemetry.clocks import ClockReading, clock_line
from profharness.trace.series.names import series_of
from profharness.understand.export.command import export
from profharness.understand.export.series import Sampled, of_files, write_series
from tests.needs import packages
from tests.run_files import run_of
from tests.rundir.series.growing_file import GrowingFile

packages("prometheus_client")
Key = tuple[str, frozenset[tuple[str, str]]]


def parsed(text: str) -> dict[Key, list[tuple[float, float | None]]]:
    """Values with stamps by name and labels. The parser itself refuses stamps that go back, and
    label sets that are not together.
    """
    from prometheus_client.openmetrics.parser import text_string_to_metric_families

    found: dict[Key, list[tuple[float, float | None]]] = defaultdict(list)
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            stamp = None if sample.timestamp is None else float(sample.timestamp)
            found[sample.name, frozenset(sample.labels.items())].append((sample.value, stamp))
    return found


def test_a_run_of_two_nodes_holds_every_sample_at_its_time(tmp_path: Path) -> None:
    root = tmp_path / "run"
    run_of(root, ranks=2, kernels=20)
    place = tmp_path / "run.prom"
    assert export([root], place, "openmetrics").left_out == ()
    found = parsed(place.read_text())
    assert all(stamp is not None for rows in found.values() for _, stamp in rows)
    clocks = {}
    for reading in RunDir.open(root).read_manifest().clocks:
        clocks.setdefault(reading.host, reading.realtime_ns - reading.monotonic_ns)
    checked = 0
    for path in sorted((root / "telemetry").glob("*.samples.bin")):
        trace = telemetry.read(path)
        host, samples = trace.sources[0].host, trace.samples
        for code, place_ in {
            (int(m), int(d)) for m, d in zip(samples.metric, samples.device, strict=True)
        }:
            device = trace.devices[place_] if place_ >= 0 else None
            series = series_of(trace.strings[code], device.vendor if device else "")
            assert series is not None
            labels = {**dict(series.labels), "host": host}
            if device is not None:
                labels |= {"device": device.identity, "card": device.index}
            mine = samples.take((samples.metric == code) & (samples.device == place_))
            rows = found[series.sample, frozenset(labels.items())]
            value = mine.value * series.scale
            if series.summed:
                value = np.cumsum(mine.value * (mine.until_ns - mine.at_ns)) * series.scale / 1e9
            assert [one for one, _ in rows] == pytest.approx(value.tolist())
            expected = (mine.until_ns + clocks[host]) / 1e9
            assert np.abs(np.array([stamp for _, stamp in rows]) - expected).max() < 1.1e-3
            checked += len(rows)
    told = [len(rows) for (_, labels), rows in found.items() if "host" in dict(labels)]
    assert checked == sum(told) > 400


def test_a_folder_of_telemetry_alone_is_exported_too(tmp_path: Path) -> None:
    growing = GrowingFile(tmp_path / "n1.samples.bin", 6.0)
    for row in range(20):
        growing.add(1000 * row, 30_000 * row, 300)
    readings = tmp_path / "n1.clocks.jsonl"
    at = growing.at
    readings.write_bytes(clock_line("n1", "before", ClockReading(at, at, at, at + 10**18, 100)))
    export([tmp_path / "n1.samples.bin"], tmp_path / "a.prom", "openmetrics")
    found = parsed((tmp_path / "a.prom").read_text())
    rows = found["rocm_energy_joules", device("n1")]
    assert [value for value, _ in rows] == pytest.approx([30.0 * row for row in range(1, 20)])
    stamps = np.diff([stamp for _, stamp in rows if stamp is not None])
    assert stamps == pytest.approx([0.1] * 18, abs=1.1e-3)
    readings.unlink()
    made = export([tmp_path / "n1.samples.bin"], tmp_path / "b.prom", "openmetrics")
    assert "n1.samples.bin is left out" in made.left_out[0]


def device(host: str) -> frozenset[tuple[str, str]]:
    return frozenset({"host": host, "device": "0000:c1:00.0", "card": "0"}.items())


def test_samples_within_one_millisecond_and_a_clock_that_went_back(tmp_path: Path) -> None:
    """Databases keep whole milliseconds, and refuse a second sample of the same one."""
    growing = GrowingFile(tmp_path / "n1.samples.bin", 6.0)
    begin = growing.at
    for row, later in enumerate((0, 100_000, 200_000, 1_500_000, 1_400_000, 5_000_000)):
        growing.at = begin + later
        growing.add(row, row, 100 + row)
    kept = kept_samples(tmp_path / "n1.samples.bin")
    out = io.StringIO()
    write_series(Sampled((kept,), {"n1": 10**18 - begin}), out)
    rows = parsed(out.getvalue() + "# EOF\n")["rocm_average_socket_power_watts", device("n1")]
    assert [value for value, _ in rows] == [100, 103, 105]


def big(folder: Path, hosts: int, rows: int) -> Sampled:
    folder.mkdir()
    for number in range(hosts):
        growing = GrowingFile(folder / f"{number}.samples.bin", 0.0)
        record = growing.layout.row
        block = b"".join(
            record.pack(at, at, 0, at, at + 2, *(7 * row, 7 * row, row, row, row % 500))
            for row, at in ((row, growing.at + row * 10_000_000) for row in range(rows))
        )
        growing.file.append(block)
        growing.file.flush()
        data = (folder / f"{number}.samples.bin").read_bytes()
        name = f'"host":"m{number}"'.encode()
        (folder / f"{number}.samples.bin").write_bytes(data.replace(b'"host":"n1"', name, 1))
    files = tuple(kept_samples(path) for path in sorted(folder.iterdir()))
    return Sampled(files, {one.host: 0 for one in files})


class Nowhere(io.TextIOBase):
    """Counts what is written, and keeps nothing."""

    size = 0

    def write(self, text: str) -> int:
        self.size += len(text)
        return len(text)


def cost(sampled: Sampled) -> tuple[int, int]:
    """Peak memory and size of the text in bytes."""
    out = Nowhere()
    tracemalloc.start()
    write_series(sampled, out)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak, out.size


def test_memory_depends_neither_on_the_number_of_nodes_nor_on_the_text(tmp_path: Path) -> None:
    one = cost(big(tmp_path / "one", 1, 20_000))
    many = cost(big(tmp_path / "many", 5, 20_000))
    assert many[1] == pytest.approx(5 * one[1], rel=0.01)
    assert many[0] < 1.2 * one[0]
    assert many[0] < many[1] / 5


def test_what_is_no_telemetry_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}")
    assert of_files([tmp_path / "x.json", tmp_path / "none"]).files == ()
