"""The levels of a served run as traces: requests (from the table, or raw where a killed run left
them so), executions, and each level's window.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from profharness.errors import InputError
from profharness.rundir import requests, requests_raw
from profharness.rundir.foreign.border import reading
from profharness.rundir.foreign.inside import Inside
from profharness.rundir.manifest import Manifest, PointRecord
from profharness.trace.model import Marks, Problem, Strings, Trace

LAYER = "requests"


def level_traces(inside: Inside, manifest: Manifest, problems: list[Problem]) -> Iterator[Trace]:
    """Labelled with pass, point and host; the times are CLOCK_MONOTONIC of the host."""
    if not any(record.mode is not None for record in manifest.points) and not _left(inside):
        return
    records = {
        (record.pass_name, f"{record.id}~{record.repeat}" if record.repeat else record.id): record
        for record in manifest.points
    }
    host = manifest.nodes[0].host if manifest.nodes else ""
    folders = inside.found("points/*/*", folders=True)
    problems += folders.refused
    for folder in folders.paths:
        record = records.get((folder.parent.name, folder.name))
        try:
            with reading(folder):
                traces = _of_level(folder, inside)
        except InputError as error:
            problems.append(Problem("error", inside.named(folder), 1, error.message))
        else:
            for trace in traces:
                yield _labelled(inside, trace, folder, record, host)
        if record is not None and record.level is not None:
            yield _labelled(inside, _window(record, folder), folder, record, host)


def _left(inside: Inside) -> bool:
    """Whether there are levels that a killed run did not record."""
    return any(True for _ in (inside.root / "points").glob("*/*/requests*"))


def _of_level(folder: Path, inside: Inside) -> tuple[Trace, ...]:
    """The requests and executions of a level. Raises InputError where one of its files is not to be
    read: what the others hold would be a part of the load.
    """
    for path in folder.iterdir():
        if path.name == requests.NAME or path.suffix == ".i64":
            inside.require(path)
    if (folder / requests.NAME).exists():
        return (
            requests.read(folder / requests.NAME, folder.name),
            *requests_raw.executions(folder, folder.name),
        )
    return requests_raw.to_traces(folder, folder.name) if any(folder.glob("requests-*.i64")) else ()


def _window(record: PointRecord, folder: Path) -> Trace:
    """The time in which the level was measured, as the mark of its point."""
    assert record.level is not None
    strings = Strings()
    level = record.level
    marks = Marks.build(
        1,
        start_ns=level.window_start_ns,
        dur_ns=level.window_ns,
        name=strings.code(folder.name),
        kind=strings.code("point"),
        point=strings.code(folder.name),
        items=level.requests * (record.batch_size or 1),
        source=0,
    )
    return Trace(
        sources=(replace(requests_raw.SOURCE, path=str(folder / "window"), format="level"),),
        strings=strings,
        marks=marks,
    )


def _labelled(
    inside: Inside, trace: Trace, folder: Path, record: PointRecord | None, host: str
) -> Trace:
    ran_on = (record.host if record is not None else "") or host
    path = inside.named(Path(trace.sources[0].path))
    pid = (
        trace.sources[0].pid
        if trace.sources[0].format == "executions"
        else record.pid
        if record is not None
        else None
    )
    source = replace(
        trace.sources[0],
        path=path,
        pass_name=folder.parent.name,
        point=folder.name,
        layer=LAYER,
        host=ran_on,
        pid=pid,
    )
    return replace(
        trace,
        sources=(source,),
        problems=tuple(replace(problem, source=path) for problem in trace.problems),
    )
