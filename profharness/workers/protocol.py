"""The harness's side of the workers' protocol: append-only JSON lines under control/<pass>/
(docs/run-directory.md#workers-protocol).

The harness writes points.jsonl; each execution of a worker writes results-<rank>-<n>.jsonl. Nothing
goes over stdin or stdout, so that workloads may print and tools may run the command several times.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec

from profharness.errors import InputError
from profharness.rundir.levels import Level
from profharness.scans.contract import StreamOutput

VERSION = 1


class Line(msgspec.Struct, frozen=True):
    """One line of a results file; which fields are set depends on `kind`. Times are CLOCK_MONOTONIC
    ns.
    """

    v: int
    kind: Literal["hello", "begin", "result", "bye", "error"]
    id: str = ""
    pid: int | None = None
    host: str = ""
    argv: tuple[str, ...] = ()
    versions: dict[str, str] = {}
    devices: tuple[dict[str, object], ...] = ()
    monotonic_ns: int | None = None
    ok: bool = False
    error: str = ""
    hint: str = ""
    reason: str = ""
    exit_status: int | None = None
    trials_ns: tuple[int, ...] = ()
    starts_ns: tuple[int, ...] = ()
    items: int = 0
    warmup_ns: tuple[int, ...] = ()
    warmup_starts_ns: tuple[int, ...] = ()
    compile_ns: int | None = None
    cold_cache: bool | None = None
    notes: dict[str, str] = {}
    end_monotonic_ns: int | None = None
    device: str = ""
    flops_per_item: float | None = None
    level: Level | None = None
    streams: tuple[StreamOutput, ...] = ()


_LINE = msgspec.json.Decoder(Line)


def write_points(
    path: Path, points: Iterable[tuple[str, Mapping[str, object]]], *, complete: bool
) -> None:
    """Append points (id, params); `complete` closes the list, so that workers need not wait for
    more.
    """
    with path.open("ab") as file:
        for point_id, params in points:
            file.write(
                msgspec.json.encode(
                    {"v": VERSION, "kind": "point", "id": point_id, "params": params}
                )
                + b"\n"
            )
        if complete:
            file.write(msgspec.json.encode({"v": VERSION, "kind": "end"}) + b"\n")


def write_spec(path: Path, settings: Mapping[str, object]) -> None:
    """The worker's static settings."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(settings), indent=2) + b"\n")


@dataclass
class ResultsTail:
    """Follows every results file of one pass; `poll` returns the lines that are complete since the
    last call.
    """

    folder: Path
    _offsets: dict[Path, int] = field(default_factory=dict)

    def skip_existing(self) -> None:
        """Ignore what earlier executions wrote."""
        for path in self.folder.glob("results-*.jsonl"):
            self._offsets[path] = path.stat().st_size

    def poll(self) -> list[Line]:
        """New complete lines in file order. Raises InputError for a line that is not of the
        protocol.
        """
        lines: list[Line] = []
        for path in sorted(self.folder.glob("results-*.jsonl")):
            offset = self._offsets.get(path, 0)
            try:
                with path.open("rb") as file:
                    file.seek(offset)
                    data = file.read()
            except FileNotFoundError:
                continue  # somebody removed it between the two looks
            end = data.rfind(b"\n") + 1
            self._offsets[path] = offset + end
            lines += [_decode(raw, path) for raw in data[:end].splitlines() if raw.strip()]
        return lines


def _decode(raw: bytes, path: Path) -> Line:
    try:
        return _LINE.decode(raw)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise InputError(
            f"{path}: a worker wrote a line outside the protocol ({error})",
            "the workload and profharness may be of different versions",
        ) from error
