"""The lines and functions of Python that py-spy sampled in a run, or in trace files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from profharness.errors import UsageError
from profharness.readers.border import reading
from profharness.readers.py_spy import reader
from profharness.rundir.blocks import read_head
from profharness.rundir.paths import MANIFEST, RunDir
from profharness.understand.loose.code_files import holds_code

if TYPE_CHECKING:
    from profharness.analysis.host.line_records import By, LineTable
    from profharness.trace.model import Problem

_HEAD_BYTES = 1 << 14


@dataclass(frozen=True)
class PythonLines:
    """The table, None where no stacks of Python were sampled, and what the readers lost."""

    table: LineTable | None
    problems: tuple[Problem, ...] = ()


def asked_lines(paths: Sequence[Path], by: str, pass_name: str | None = None) -> PythonLines | None:
    """The lines or functions of Python where rows `by` are these: where functions are asked for, or
    lines and stacks were sampled, or nothing is asked for and nothing else was recorded. None where
    rows are of another kind. Raises as `python_lines` does.
    """
    if by == "function":
        return python_lines(paths, "function", pass_name)
    if (by == "line" and not all(map(holds_code, paths))) or (not by and _only_samples(paths)):
        found = python_lines(paths, "line", pass_name)
        return None if found.table is None else found
    return None


def _only_samples(paths: Sequence[Path]) -> bool:
    """Whether the files are all of py-spy, or the layers of a run are none but that."""
    if len(paths) == 1 and paths[0].is_dir():
        return _layers_of(paths[0]) == {reader.name}
    return all(_is_sampled(path) for path in paths)


def python_lines(paths: Sequence[Path], by: By, pass_name: str | None = None) -> PythonLines:
    """The table of one run, or of files together. Raises as `load` does, and UsageError for a pass
    of files, or one that the run does not have.
    """
    from profharness.analysis.host.line_tables import line_table
    from profharness.understand.load import load

    of_run = len(paths) == 1 and paths[0].is_dir()
    if of_run and reader.name not in _layers_of(paths[0]):
        return PythonLines(None)
    chosen = list(paths) if of_run else [path for path in paths if _is_sampled(path)]
    if not chosen:
        return PythonLines(None)
    if pass_name is not None and not of_run:
        raise UsageError(
            f"--pass {pass_name}: no such pass", "trace files have no passes: leave --pass out"
        )
    loaded = load(chosen)
    names = dict.fromkeys(source.pass_name for source in loaded.trace.sources if source.pass_name)
    if pass_name is not None and pass_name not in names:
        raise UsageError(f"--pass {pass_name}: no such pass", f"the passes are {', '.join(names)}")
    return PythonLines(line_table(loaded.trace, by, pass_name), loaded.trace.problems)


def _layers_of(root: Path) -> set[str]:
    """The layers of all passes of a run; none of another folder."""
    if not (root / MANIFEST).is_file():
        return set()
    passes = RunDir.open(root).read_manifest().passes
    return {layer for record in passes for layer in record.layers}


def _is_sampled(path: Path) -> bool:
    if path.is_dir():
        return False
    with reading(path):
        head = read_head(path, _HEAD_BYTES)
        return reader.sniff(head, path.name) or reader.SPEEDSCOPE in head
