"""The sampler's binary files: secrets in their header go, rows stay."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.errors import InputError
from profharness.rundir.telemetry_rows import FIXED_BYTES, MAGIC, read_header
from profharness.secrets.names import MARKER
from profharness.secrets.scrub import scan, scrub

COLUMN = {"role": "boot", "type": "q"}
ROWS = bytes(range(256)) * 3


def file_of(path: Path, host: str, rows: bytes = ROWS) -> Path:
    header = json.dumps({"v": 1, "host": host, "hz": 10.0, "columns": [COLUMN]}).encode()
    path.write_bytes(MAGIC + len(header).to_bytes(4, "little") + bytes(4) + header + rows)
    return path


def read(path: Path) -> tuple[str, bytes]:
    data = path.read_bytes()
    header, rows = read_header(data, path)
    return header.host, data[rows:]


def test_a_secret_in_the_header_is_replaced_and_the_rows_stay(tmp_path: Path) -> None:
    path = file_of(tmp_path / "a.samples.bin", "n1 HF_TOKEN=hf_abcdefghijkl n2")
    assert dict(scan(path)) == dict(scrub(path)) == {"HF_TOKEN": 1}
    assert read(path) == (f"n1 HF_TOKEN={MARKER} n2", ROWS)
    assert not scan(path)


@given(st.binary(max_size=9000), st.integers(0, 5000))
def test_whatever_the_rows_hold_they_are_not_text(
    tmp_path_factory: pytest.TempPathFactory, rows: bytes, length: int
) -> None:
    """Oracle: the bytes that were written. Lengths of headers look like control characters."""
    path = file_of(tmp_path_factory.mktemp("s") / "a.samples.bin", "n" * length, rows)
    before = path.read_bytes()
    assert not scrub(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("size", [9, FIXED_BYTES, FIXED_BYTES + 20])
def test_a_file_that_ends_in_its_header_is_damaged(tmp_path: Path, size: int) -> None:
    path = file_of(tmp_path / "a.samples.bin", "node")
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(InputError, match="ends in its header"):
        scan(path)
