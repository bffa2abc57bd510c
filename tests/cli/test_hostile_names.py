"""Names of foreign files and in them that try to act on the terminal, to forge lines, to be taken
for markup, formulas or tags: every command that reads files shows them, and none obeys them.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import unicodedata
from pathlib import Path

import msgspec
import pytest

from profharness import cli
from profharness.report.text.terminal import render
from tests.report.samples import SAMPLES, gpu_hotspots

EVIL = (
    "k\x1b[31mRED\x1b]8;;http://evil\x07x\x1b]8;;\x07\x1b]52;c;aGk=\x07\x9b31m\u202egnp\u2066z\u200bw"
    "\r\nerror: forged\tq[red]m[/red][link=http://x]l\x00\x7f\U000e0041"
)
FOLDER = b"n\x1b[31mR\x1b]0;t\x07\xe2\x80\xaeg\xff\xe2\x80\x8b\nerror: forged"
FOLDING = [
    "kernel",
    "op",
    "shape",
    "module",
    "range",
    "stack",
    "category",
    "call",
    "line",
    "instruction",
]


def trace(name: str) -> dict[str, object]:
    """A Kineto trace of two steps in which every name is `name`."""

    def event(what: str, start: float, dur: float, kind: str, **args: object) -> dict[str, object]:
        device = kind == "kernel"
        where = {"pid": 0 if device else 7, "tid": 3 if device else 7}
        return {"ph": "X", "name": what, "ts": start, "dur": dur, "cat": kind, "args": args} | where

    events: list[dict[str, object]] = []
    for number in range(4):
        at = number * 1000.0
        events += [
            event(f"aten::{name}", at, 500, "cpu_op", **{"External id": number}),
            event("hipLaunchKernel", at + 10, 20, "cuda_runtime", correlation=number),
            event(name, at + 100, 400, "kernel", correlation=number, device=0, stream=3),
            event(f"ProfilerStep#{number}", at, 990, "user_annotation"),
            event(f"{name} range", at, 900, "user_annotation"),
        ]
    events += [
        {"ph": "M", "name": f"{kind}_name", "pid": 7, "tid": 7, "args": {"name": name}}
        for kind in ("process", "thread")
    ]
    device = {"id": 0, "name": name, "totalGlobalMem": 1, "warpSize": 64, "numSms": 104}
    return {"schemaVersion": 1, "deviceProperties": [device], "traceEvents": events}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of such a name, with such files in it."""
    made = tmp_path / os.fsdecode(FOLDER)
    made.mkdir()
    (made / "t\x1b[2J\nerror: forged.json").write_text(json.dumps(trace(EVIL)))
    (made / "bad\x9b.json").write_text('{"traceEvents":[{"ph"')
    (made / "scan.csv").write_text(
        "model,backend,batch_size,throughput\n"
        + "".join(
            f'"=cmd{EVIL}","{kind}{EVIL}",{at},{at * 10}\n'.replace("\0", "")
            for kind in "ab"
            for at in (1, 2, 4, 8)
        )
    )
    return made


def shown(capsys: pytest.CaptureFixture[str], *words: str | Path, code: int = 0) -> str:
    """What a command printed, after looking that nothing of it acts on a terminal."""
    status = cli.run_cli([str(word) for word in words])
    out, err = capsys.readouterr()
    for text in (out, err):
        hidden = [
            (one, text[max(at - 40, 0) : at + 20])
            for at, one in enumerate(text)
            if unicodedata.category(one) in ("Cc", "Cf", "Cs", "Zl", "Zp") and one not in "\t\n"
        ]
        assert not hidden, (words[0], hidden[:3])
        assert not re.search("^error: forged", text, re.MULTILINE), (words[0], text)
        assert "itself failed" not in text, (words, text)
    assert status == code, (words, err)
    return out


def test_no_command_obeys_a_name(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evil, merged = folder / "t\x1b[2J\nerror: forged.json", folder / "m.pftrace"
    bad, scan = folder / "bad\x9b.json", folder / "scan.csv"
    shown(capsys, "metrics", evil)
    shown(capsys, "metrics", evil, "--steps", "1:3")
    assert json.loads(shown(capsys, "metrics", evil, "--json"))["trace"]["kernels"] == 4
    for by in FOLDING:
        shown(capsys, "hotspots", evil, "--by", by)
    assert "\\u001b]52;c;aGk=" in shown(capsys, "hotspots", evil)
    [row] = json.loads(shown(capsys, "hotspots", evil, "--json"))["rows"]
    assert row["name"] == EVIL
    shown(capsys, "compare", evil, evil)
    json.loads(shown(capsys, "compare", evil, evil, "--json"))
    shown(capsys, "merge", evil, "-o", merged)
    shown(capsys, "validate", merged)
    json.loads(shown(capsys, "validate", merged, "--json"))
    shown(capsys, "hotspots", merged)
    for words in (("metrics", bad), ("merge", bad, "-o", folder / "n"), ("validate", bad)):
        shown(capsys, *words, code=4)
    shown(capsys, "hotspots", bad, evil)
    shown(capsys, "saturation", scan)
    json.loads(shown(capsys, "saturation", scan, "--json"))
    secret = {"traceEvents": [], "env": {"API_TOKEN": "d41d8cd98f00b204e9800998ecf8427e"}}
    (kept := folder / "s\nerror: forged.json").write_text(json.dumps(secret))
    for words in (("scrub", evil), ("scrub", "--dry-run", kept), ("scrub", kept)):
        shown(capsys, *words)
    shown(capsys, "ls", folder)
    shown(capsys, "report", folder, code=4)
    shown(capsys, "view", folder, code=4)
    for words in (("metrics", f"none{EVIL[:5]}"), ("report", folder / "none")):
        shown(capsys, *words, code=4)
    for words in ((f"rnu{EVIL}",), ("metrics", f"--{EVIL}"), ("run", EVIL), ("wrap", EVIL, "--")):
        shown(capsys, *words, code=2)
    shown(capsys, "topology", "-o", folder / "places.json")


def test_the_coloured_summary_holds_no_colour_but_its_own() -> None:
    summary = SAMPLES["gpu_scan"]()
    rows = tuple(
        msgspec.structs.replace(row, name=f"{number}{EVIL}")
        for number, row in enumerate(gpu_hotspots().rows)
    )
    summary = msgspec.structs.replace(
        summary,
        findings=tuple(
            msgspec.structs.replace(one, severity="error", message=EVIL) for one in summary.findings
        ),
        hotspots=(msgspec.structs.replace(gpu_hotspots(), rows=rows),),
        points=tuple(
            msgspec.structs.replace(point, backend=f"[red]{EVIL}", error=EVIL)
            for point in summary.points
        ),
    )
    text = render(summary, 120, color=True, made=((f"{EVIL}.html", ""),))
    own = re.sub(r"\x1b\[[\d;]*m", "", text)
    assert own != text
    assert not [
        one for one in own if unicodedata.category(one) in ("Cc", "Cf") and one not in "\t\n"
    ]
    assert not re.search("^error: forged", own, re.MULTILINE)
    assert own.count("k\\u001b[31mRED\\u001b]8;;http://evil") > 1


def test_csv_is_no_program_for_a_spreadsheet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps(trace("=HYPERLINK(A1)")))
    text = shown(capsys, "hotspots", path, "--format", "csv")
    assert [row["name"] for row in csv.DictReader(io.StringIO(text))] == ["'=HYPERLINK(A1)"]
    text = shown(capsys, "hotspots", path, "--format", "csv", "--raw-csv")
    assert [row["name"] for row in csv.DictReader(io.StringIO(text))] == ["=HYPERLINK(A1)"]
