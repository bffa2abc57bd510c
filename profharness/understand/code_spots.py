"""Which files of a run, or of a line, say where time went inside of kernels, and their table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from profharness.analysis.code.records import By, CodeHotspots
from profharness.analysis.code.spots import code_hotspots
from profharness.errors import InputError, UsageError
from profharness.readers.border import reading
from profharness.readers.code import sample_csv, sample_json, thread_trace
from profharness.readers.rocprofv3 import json_reader
from profharness.rundir.blocks import read_head
from profharness.rundir.manifest import Artifact, Manifest
from profharness.rundir.paths import RunDir
from profharness.secrets.discretion import clean_texts
from profharness.trace.code_records import CodeFile, CodeRecord
from profharness.trace.model import Problem
from profharness.understand.own_files import sound
from profharness.understand.run_files import all_artifacts

NO_ROWS = "nothing-by-line"
"""The finding that says why."""
_HEAD_BYTES = 1 << 14


@dataclass(frozen=True)
class CodeSpots:
    """The table, what the readers lost, and why a run's pass that should hold rows has none."""

    table: CodeHotspots
    problems: tuple[Problem, ...]
    why: str = ""


def of_files(paths: Sequence[Path], by: By) -> CodeSpots:
    """The table of loose files. A JSON file counts where no CSV file of the same process does, and
    files of other kinds hold nothing of this. Raises InputError for a file that cannot be read, and
    UsageError for files of several methods.
    """
    parts = [part for path in _without_copies(paths) for part in _read(path)]
    return _spots(parts, by, None)


def of_run(root: Path, by: By, pass_name: str | None) -> CodeSpots:
    """The table of one pass of a run: the one asked for, or else the first that recorded any.

    Raises InputError for a folder that is no run, and UsageError for a pass that it does not have.
    """
    run = RunDir.open(root)
    manifest = run.read_manifest()
    if pass_name is not None and pass_name not in [record.name for record in manifest.passes]:
        names = ", ".join(record.name for record in manifest.passes)
        raise UsageError(f"--pass {pass_name}: no such pass", f"the passes are {names}")
    with reading(run.artifacts_path("")):
        artifacts, refused = sound(run.root, all_artifacts(run, manifest))
    problems = list(refused)
    for name in _passes(manifest, pass_name):
        of_pass = [item for item in artifacts if item.pass_name == name]
        parts = list(_of_artifacts(run, of_pass, problems))
        if any(part.records for part in parts):
            spots = _spots(parts, by, name)
            return replace(spots, problems=(*problems, *spots.problems))
    missed = [one for one in manifest.findings if one.id == NO_ROWS and pass_name is None]
    told = [f"{one.message}; {one.advice}" for one in missed]
    nothing = CodeHotspots(by=by, pass_name=pass_name, method=None)
    return CodeSpots(nothing, tuple(problems), "; ".join(told))


def _passes(manifest: Manifest, pass_name: str | None) -> list[str]:
    return [
        record.name for record in manifest.passes if pass_name is None or record.name == pass_name
    ]


def _of_artifacts(
    run: RunDir, artifacts: Iterable[Artifact], problems: list[Problem]
) -> Iterator[CodeFile]:
    """The parts of a pass; a file that cannot be read becomes a problem."""
    paths = {run.root / artifact.path: artifact.path for artifact in artifacts}
    for path in _without_copies([path for path in paths if path.is_file()]):
        try:
            with reading(path):
                parts = _read(path)
            for part in parts:
                yield replace(
                    part,
                    path=paths[path],
                    problems=tuple(replace(one, source=paths[path]) for one in part.problems),
                )
        except InputError as error:
            message = f"{error.message}; the file is left out"
            problems.append(Problem("error", paths[path], 1, message))


def _without_copies(paths: Sequence[Path]) -> list[Path]:
    """The files without the JSON of processes whose samples stand in CSV files too."""
    told = {
        (path.parent, sample_csv.prefix_of(path))
        for path in paths
        if ".csv" in path.name and "pc_sampling" in path.name
    }
    return [
        path
        for path in paths
        if (path.parent, path.name.partition("results.json")[0]) not in told or ".csv" in path.name
    ]


def _read(path: Path) -> tuple[CodeFile, ...]:
    head = read_head(path, _HEAD_BYTES)
    with reading(path):
        if ".csv" in path.name and thread_trace.sniff(head, path.name):
            return (thread_trace.read_code(path),)
        if ".csv" in path.name and sample_csv.is_samples(head, path.name):
            return (sample_csv.read(path),)
        return sample_json.read(path) if json_reader.sniff(head, path.name) else ()


def _spots(parts: Sequence[CodeFile], by: By, pass_name: str | None) -> CodeSpots:
    clean = _discreet(parts)
    problems = tuple(problem for part in parts for problem in part.problems)
    return CodeSpots(code_hotspots(clean, by, pass_name), problems)


def _discreet(parts: Sequence[CodeFile]) -> Sequence[CodeFile]:
    """The same without secret values in the texts of the records."""
    texts = list(
        dict.fromkeys(text for part in parts for one in part.records for text in _texts(one))
    )
    cleaned = clean_texts(texts)
    if cleaned is texts:
        return parts
    clean = dict(zip(texts, cleaned, strict=True))
    return [
        replace(
            part,
            records=tuple(
                _with(one, (clean[text] for text in _texts(one))) for one in part.records
            ),
        )
        for part in parts
    ]


def _texts(record: CodeRecord) -> tuple[str, str, str]:
    return record.kernel, record.instruction, record.source


def _with(record: CodeRecord, texts: Iterable[str]) -> CodeRecord:
    kernel, instruction, source = texts
    return replace(record, kernel=kernel, instruction=instruction, source=source)
