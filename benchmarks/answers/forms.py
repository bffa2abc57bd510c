"""The form of a run directory that was measured anew: what it holds, without what was measured."""

from __future__ import annotations

import json
import re
import socket
from collections import Counter
from pathlib import Path
from typing import Any

TRACE = (
    "kernels",
    "copies",
    "devices",
    "streams",
    "ranks",
)  # counts that a stand-in program decides


def of_run(run: Path) -> dict[str, str]:
    """The files, and what the manifest says of passes, points, artifacts and findings."""
    files = Counter(_plain(str(path.relative_to(run))) for path in run.rglob("*") if path.is_file())
    found = {
        "files of the run": "\n".join(f"{count} {name}" for name, count in sorted(files.items()))
    }
    manifest = run / "manifest.json"
    if manifest.is_file():
        found["manifest of the run"] = "\n".join(_manifest(json.loads(manifest.read_bytes())))
    return found


def _manifest(document: dict[str, Any]) -> list[str]:
    lines = [f"{name}: {document.get(name)}" for name in ("schema", "state", "exit_status")]
    lines += [
        "pass " + _chosen(record, ("name", "state", "exit_status", "executions", "counters"))
        for record in document.get("passes", ())
    ]
    lines += [
        "point " + _chosen(record, ("id", "pass", "pass_name", "repeat", "state"))
        for record in document.get("points", ())
    ]
    kinds = Counter(
        _chosen(record, ("layer", "format", "pass", "pass_name", "point", "aside", "rank"))
        for record in document.get("artifacts", ())
    )
    lines += [f"{count} artifacts {kind}" for kind, count in sorted(kinds.items())]
    return [*lines, *sorted(keys(document))]


def _chosen(record: dict[str, Any], names: tuple[str, ...]) -> str:
    return ", ".join(f"{name} {record[name]}" for name in names if name in record)


def _plain(name: str) -> str:
    """A file name without the host's name and without numbers of processes and times."""
    return re.sub(r"\d{3,}", "<NUMBER>", name.replace(socket.gethostname(), "<HOST>"))


def of_texts(texts: dict[str, str]) -> dict[str, str]:
    """Exit codes, the keys of JSON output, and the counts in it; other output is left out."""
    found = {}
    for name, text in texts.items():
        if name.startswith("stdout") and text.startswith("{"):
            document = json.loads(text)
            counts = [
                f"{one}: {document['trace'].get(one)}"
                for one in TRACE
                if isinstance(document.get("trace"), dict)
            ]
            found[f"keys of {name}"] = "\n".join([*counts, *sorted(keys(document))])
        elif not name.startswith(("stdout", "stderr")):
            found[name] = text
    return found


def keys(document: Any, place: str = "") -> set[str]:
    """The path of every value; the elements of a list have one path together."""
    if isinstance(document, dict):
        return set().union(
            {place}, *(keys(value, f"{place}.{name}") for name, value in document.items())
        )
    if isinstance(document, list):
        return set().union({place}, *(keys(value, f"{place}[]") for value in document))
    return {place}
