"""Files of the sampler that were made to cost much: each column takes as long as it has values."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from profharness.errors import InputError
from profharness.rundir import telemetry, telemetry_files, telemetry_rows
from profharness.rundir.foreign.inside import Inside
from tests.steps import calls_of

BLOCK = 64
ROLES = (("deadline", ""), ("boot", ""), ("missed", ""), ("before", "gpus"), ("after", "gpus"))


def write(path: Path, values: list[dict[str, Any]], rows: int = 3, *, roles: int = 5) -> Path:
    """A file whose values stand in a block of 64 bytes, each row's bytes counting from its number
    on.
    """
    columns: list[dict[str, Any]] = [
        {"role": role, "type": "q", "at": 8 * place, "source": source}
        for place, (role, source) in enumerate(ROLES[:roles])
    ]
    columns += [{"role": "value", "type": "q", "source": "gpus", **value} for value in values]
    facts = {
        "v": 2, "host": "n0", "hz": 10.0, "width": 40 + BLOCK, "columns": columns,
        "devices": [{"number": "0"}],
    }  # fmt: skip
    text = json.dumps(facts).encode()
    content = telemetry_rows.MAGIC + struct.pack("<I4x", len(text)) + text
    for row in range(rows):
        content += struct.pack("<5q", row, row, 0, 10 * row, 10 * row + 2)
        content += bytes((row + n) % 256 for n in range(BLOCK))
    path.write_bytes(content)
    return path


def taken(name: str, repeat: int, how: str, unset: int = 255) -> dict[str, Any]:
    return {"metric": name, "device": 0, "how": how, "taken": [[40, "B", repeat, unset, False]]}


def refused(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        telemetry.read(path)
    return caught.value.message


@pytest.mark.parametrize("kind", [{"form": "instant"}, {"form": "counter"}])
def test_a_column_does_not_look_through_the_others(tmp_path: Path, kind: dict[str, str]) -> None:
    def calls(count: int) -> int:
        values = [{"metric": f"m{n}", "device": 0, "at": 40, **kind} for n in range(count)]
        path = write(tmp_path / "n0.samples.bin", values)
        return calls_of(lambda: telemetry.read(path))

    calls(10)  # what is imported and kept
    few, more = calls(30), calls(60)
    assert more < 2 * few + 30


def test_columns_made_of_far_more_than_a_row_are_refused(tmp_path: Path) -> None:
    values = [taken(f"m{n}", BLOCK, "mean") for n in range(14)]
    path = write(tmp_path / "n0.samples.bin", values)
    assert "its columns are made of 896 bytes of rows of 104 bytes" in refused(path)
    assert len(telemetry.read(write(path, values[:13])).samples) == 13 * 3


def test_more_values_than_the_size_explains_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "n0.samples.bin", [taken(f"m{n}", 1, "one") for n in range(9)])
    monkeypatch.setattr(telemetry, "VALUES_GROWTH", 0)
    monkeypatch.setattr(telemetry, "TELEMETRY_VALUES", 26)
    assert "more values than a sampler's file of its size" in refused(path)
    monkeypatch.setattr(telemetry, "TELEMETRY_VALUES", 27)
    assert len(telemetry.read(path).samples) == 27


@pytest.mark.parametrize("how", ["one", "mean", "average", "total"])
def test_long_blocks_give_the_same_by_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    path = write(tmp_path / "n0.samples.bin", [taken("m", 48, how, unset=50)], rows=40)
    block = np.array([[(row + n) % 256 for n in range(48)] for row in range(40)])
    is_set = block != 50
    total = np.where(is_set, block, 0).sum(axis=1)
    mean = total / is_set.sum(axis=1)
    wanted = {"one": block[:, 0], "total": total, "average": mean, "mean": np.rint(mean)}[how]
    for at_once in (1, 100, 1 << 20):
        monkeypatch.setattr(telemetry_rows, "_AT_ONCE", at_once)
        assert telemetry.read(path).samples.value.tolist() == wanted.tolist()


def test_rows_without_times_of_reading_are_told(tmp_path: Path) -> None:
    path = write(tmp_path / "n0.samples.bin", [{"metric": "m", "device": 0, "at": 40}], roles=4)
    assert refused(path) == f"{path}: cannot be read (its rows have no field 'after')"


def test_more_files_than_their_size_explains_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "telemetry").mkdir()
    for host in range(5):
        (tmp_path / "telemetry" / f"n{host}.samples.bin").write_bytes(bytes(100))
    inside = Inside(tmp_path)
    assert len(telemetry_files.found_in(inside).paths) == 5
    monkeypatch.setattr(telemetry_files, "HOSTS", 2)
    monkeypatch.setattr(telemetry_files, "HOST_BYTES", 400)
    found = telemetry_files.found_in(inside)
    assert [path.name for path in found.paths] == [f"n{host}.samples.bin" for host in range(3)]
    (told,) = found.refused
    assert (told.count, told.severity) == (2, "error")
    assert told.message.startswith("files of samplers are left out")
    monkeypatch.setattr(telemetry_files, "HOST_BYTES", 100)
    assert len(telemetry_files.found_in(inside).paths) == 5
