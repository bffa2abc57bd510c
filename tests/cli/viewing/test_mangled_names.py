"""A kernel that no tool demangled has one name for a reader, and one in data, in every form."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from profharness import readers
from profharness.analysis.run.runtime_logs import LoggedCall, RuntimeLog
from profharness.cli import run_cli
from profharness.report.tables.runtime_logs import log_lines
from profharness.report.text.folding import whole_names

MANGLED = "_ZN5shelf10sort_booksINS_5NovelELi64EEEvPT_i"
SHOWN = "shelf::sort_books<Novel, 64>"
FOLDED = "shelf::sort_books<…>"
ONLY_LITERALS = ("_ZN5shelf4dustIfEEvi", "_ZN5shelf4dustIdEEvi")
"""Two kernels that differ in a part that is not read."""


def trace(path: Path, *names: str, dur_us: int = 20) -> Path:
    events = []
    for number, name in enumerate(names, 1):
        at = 100 * number
        where = {"pid": 0, "tid": 7, "args": {"device": 0, "stream": 7, "correlation": number}}
        events += [
            {"ph": "X", "cat": "kernel", "name": name, "ts": at, "dur": dur_us, **where},
            {
                "ph": "X",
                "cat": "cuda_runtime",
                "name": "hipLaunchKernel",
                "ts": at - 5,
                "dur": 2,
                "pid": 1,
                "tid": 1,
                "args": {"correlation": number},
            },
        ]
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return path


def output(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    assert run_cli([str(word) for word in words]) == 0
    return capsys.readouterr().out


def test_text_shows_it_readable(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = trace(tmp_path / "a.json", MANGLED)
    text = output(capsys, "hotspots", path)
    assert SHOWN in text
    assert MANGLED not in text
    markdown = output(capsys, "hotspots", path, "--format", "md")
    assert FOLDED.replace("<", r"\<").replace(">", r"\>") in markdown


def test_compare_shows_it_readable(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    slow = trace(tmp_path / "a.json", MANGLED, dur_us=40)
    fast = trace(tmp_path / "b.json", MANGLED)
    text = output(capsys, "compare", slow, fast)
    assert SHOWN in text
    assert MANGLED not in text
    assert MANGLED in output(capsys, "compare", slow, fast, "--json")


def test_the_page_shows_it_readable_and_keeps_what_was_recorded(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    page = tmp_path / "a.html"
    output(capsys, "report", trace(tmp_path / "a.json", MANGLED), "-o", page)
    html = page.read_text()
    shown = FOLDED.replace("<", "&lt;").replace(">", "&gt;")
    assert f"<summary>{shown}</summary><p>{MANGLED}</p>" in html


def test_data_holds_what_was_recorded(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = trace(tmp_path / "a.json", MANGLED)
    rows = csv.DictReader(io.StringIO(output(capsys, "hotspots", path, "--format", "csv")))
    assert [row["name"] for row in rows] == [MANGLED]
    document = json.loads(output(capsys, "hotspots", path, "--json"))
    assert [row["name"] for row in document["rows"]] == [MANGLED]
    merged = tmp_path / "m.pftrace"
    output(capsys, "merge", path, "-o", merged)
    read = readers.read(merged)
    assert [read.strings[code] for code in read.kernels.name.tolist()] == [MANGLED]


def test_a_call_of_a_runtime_log_names_its_kernel_readable() -> None:
    call = LoggedCall(
        name=f"submission of {MANGLED}",
        calls=2,
        total_ns=30,
        longest_ns=20,
        first_ns=20,
        later_ns=10,
    )
    lines = "\n".join(
        " ".join(map(str, block)) for block in log_lines(RuntimeLog(calls=(call,)), 60)
    )
    assert f"submission of {SHOWN}" in lines
    assert MANGLED not in lines


def test_two_kernels_never_get_one_name(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert whole_names([MANGLED, *ONLY_LITERALS, MANGLED]) == [SHOWN, *ONLY_LITERALS, SHOWN]
    text = output(capsys, "hotspots", trace(tmp_path / "a.json", *ONLY_LITERALS))
    assert all(name in text for name in ONLY_LITERALS)
