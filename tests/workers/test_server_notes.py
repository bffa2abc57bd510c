"""What a server of ours tells of a level beside its requests."""

from __future__ import annotations

import json
from pathlib import Path

from profharness.scans.contract import PointOutput
from profharness.workers.server_notes import with_notes


def test_the_notes_of_the_closed_level_come_to_its_point(tmp_path: Path) -> None:
    (tmp_path / "server-ready.json").write_text(json.dumps({"v": 1, "fallback": "no GPU"}))
    lines = [
        {"kind": "opened", "id": "c1"},
        {"kind": "closed", "id": "c1", "notes": {"providers": "A", "compile_ns": "7"}},
        {"kind": "closed", "id": "c2", "notes": {"providers": "B"}},
    ]
    (tmp_path / "windows.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    first = with_notes(PointOutput(ok=True, notes={"inputs": "2 sets"}), tmp_path, "c1")
    assert first.notes == {"fallback": "no GPU", "providers": "A", "inputs": "2 sets"}
    assert first.compile_ns == 7
    second = with_notes(PointOutput(ok=True), tmp_path, "c2")
    assert (second.notes["providers"], second.compile_ns) == ("B", None)


def test_a_server_that_tells_nothing_or_died_leaves_the_point_as_it_is(tmp_path: Path) -> None:
    output = PointOutput(ok=True, notes={"a": "b"}, compile_ns=3)
    assert with_notes(output, tmp_path, "c1") == output
    (tmp_path / "server-ready.json").write_text('{"v": 1}')
    (tmp_path / "windows.jsonl").write_text('{"kind": "closed", "id": "c1"')
    assert with_notes(output, tmp_path, "c1") == output
