"""The slice that `view --at` opens at: a step by its number, or a launch of a kernel by its
name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from profharness.analysis.time.steps import device_steps
from profharness.cli.viewing.link import Spot
from profharness.errors import UsageError
from profharness.rundir.manifest import Manifest
from profharness.rundir.paths import MANIFEST, RunDir
from profharness.rundir.shown.screen import one_line
from profharness.trace.columns.keys import distinct
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64, Trace
from profharness.trace.parts.step_numbers import step_numbers
from profharness.understand.load import Loaded, load_files
from profharness.understand.steps import stepped
from profharness.units import format_ns

_NUMBER = re.compile(r"\d{1,18}", re.ASCII)
_LAUNCH = re.compile(r"(?s)(.+)#([1-9]\d{0,8})", re.ASCII)
_LONGEST_NAME = 80


def spot_in(path: Path, run: Path | None, at: str) -> Spot:
    """The slice of the trace in `path`, which is that of `run` where there is one.

    Raises UsageError where there is none, with what the trace does hold, and as `load` does.
    """
    return _spot(load_files([path], check=False, every_pass=True).trace, path, run, at)


def spots_in(path: Path, run: Path | None, wanted: Sequence[str]) -> dict[str, Spot | UsageError]:
    """The same of several, for which the trace is read once: each slice, or why there is none."""
    trace = load_files([path], check=False, every_pass=True).trace
    spots: dict[str, Spot | UsageError] = {}
    for at in wanted:
        try:
            spots[at] = _spot(trace, path, run, at)
        except UsageError as error:
            spots[at] = error
    return spots


def _spot(trace: Trace, path: Path, run: Path | None, at: str) -> Spot:
    if _NUMBER.fullmatch(at):
        loaded = Loaded(trace, str(path), _manifest(run))
        return step_spot(stepped(loaded, must=False).trace, int(at))
    return kernel_spot(trace, at)


def step_spot(trace: Trace, number: int) -> Spot:
    """The step of this number, of several ranks that of the slowest. Raises UsageError."""
    numbers = step_numbers(trace)
    rows = np.flatnonzero(numbers == number)
    if not len(rows):
        known = np.unique(numbers[numbers != NULL])
        raise UsageError(
            f"--at {number}: the trace has no such step",
            (
                f"its steps are {known[0]} to {known[-1]}"
                if len(known) > 1
                else f"its only step is {known[0]}"
            )
            if len(known)
            else "it holds no steps: name a kernel, as `profharness hotspots` lists them",
        )
    by_launch = [step for step in device_steps(trace) if step.ran and step.number == number]
    if by_launch:
        step = max(by_launch, key=lambda one: one.length_ns or 0)
        ran = step.span_ns
        length = ran[1] - ran[0] if step.length_ns is None else step.length_ns
        return Spot(step.start_ns, step.dur_ns, f"step {number}, {format_ns(length)}", ran)
    row = rows[np.argmax(trace.marks.dur_ns[rows])]
    start, dur = int(trace.marks.start_ns[row]), int(trace.marks.dur_ns[row])
    return Spot(start, dur, f"step {number}, {format_ns(dur)}")


def kernel_spot(trace: Trace, at: str) -> Spot:
    """The longest launch of the kernels of this name or, where none has it, with this text in
    their names; with #N behind it the Nth launch by time. Raises UsageError.
    """
    rows, nth = _named(trace, at), None
    if not len(rows) and (found := _LAUNCH.fullmatch(at)):
        rows, nth = _named(trace, found[1]), int(found[2])
    if not len(rows):
        raise UsageError(
            f"--at {one_line(at, _LONGEST_NAME)}: no kernel of the trace is called so",
            "`profharness hotspots` lists the names; a part of one is enough",
        )
    kernels = trace.kernels
    rows = rows[np.argsort(kernels.start_ns[rows], kind="stable")]
    if nth is not None and nth > len(rows):
        raise UsageError(
            f"--at {one_line(at, _LONGEST_NAME)}: there are {len(rows)} such launches",
            f"a number from 1 to {len(rows)}, or none for the longest",
        )
    which = int(np.argmax(kernels.dur_ns[rows])) if nth is None else nth - 1
    row = int(rows[which])
    dur = int(kernels.dur_ns[row])
    name = one_line(trace.strings[int(kernels.name[row])], _LONGEST_NAME)
    words = f"launch {which + 1} of {len(rows)} of {name}, {format_ns(dur)}"
    return Spot(int(kernels.start_ns[row]), dur, words)


def _named(trace: Trace, name: str) -> I64:
    """Rows of the kernels of exactly this name, else of those with it in their names."""
    names = {code: trace.strings[code] for code in distinct(trace.kernels.name).tolist()}
    codes = [code for code, text in names.items() if text == name]
    codes = codes or [code for code, text in names.items() if name in text]
    return np.flatnonzero(np.isin(trace.kernels.name, codes))


def _manifest(run: Path | None) -> Manifest | None:
    if run is None or not (run / MANIFEST).is_file():
        return None
    return RunDir.open(run).read_manifest()
