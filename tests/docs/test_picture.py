"""`make picture`: the page of a trace becomes a picture of the first screen, and nothing else."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path

import pytest

from docs import picture
from tests.conftest import ROOT


def trace_in(folder: Path) -> Path:
    """A hundred kernels of 5 µs, one every 10 µs."""
    path = folder / "recorded.json"
    events = [
        {
            "ph": "X",
            "cat": "kernel",
            "name": "gemm",
            "pid": 0,
            "tid": 7,
            "ts": 10 * n,
            "dur": 5,
            "args": {"device": 0, "stream": 7, "correlation": n},
        }
        for n in range(100)
    ]
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}), encoding="utf-8")
    return path


def size_of(png: bytes) -> tuple[int, int]:
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", png[16:24])
    return int(width), int(height)


def test_the_picture_in_the_readme_is_that_of_the_target() -> None:
    assert size_of(picture.PICTURE.read_bytes()) == picture.SIZE
    assert f"](docs/{picture.PICTURE.name})" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_page_has_the_title_that_is_asked_for(tmp_path: Path) -> None:
    page = picture.page_of(trace_in(tmp_path), tmp_path, "a-model-on-a-gpu.json")
    assert "a-model-on-a-gpu.json" in page.read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.skipif(not any(map(shutil.which, picture.BROWSERS)), reason="needs Chromium")
def test_a_trace_becomes_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = tmp_path / "made.png"
    assert picture.main([str(trace_in(tmp_path)), "-o", str(made)]) == 0
    assert size_of(made.read_bytes()) == picture.SIZE
    assert len(made.read_bytes()) > 20_000  # an empty page has a tenth of that
    assert "made" in capsys.readouterr().out


def test_a_trace_that_is_missing_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert picture.main([str(tmp_path / "none.json")]) == 3
    said = capsys.readouterr().err
    assert "error: " in said
    assert "make picture TRACE=FILE" in said
