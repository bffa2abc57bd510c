"""What the report's pictures draw of a run, or of trace files, besides the figures."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from profharness.analysis.host.line_tables import line_table, sampled_stacks, without_samples
from profharness.analysis.pictures.bands import bands
from profharness.analysis.pictures.flame import tree_of
from profharness.analysis.pictures.flame_layout import MOST_FRAMES as ALL_FRAMES
from profharness.analysis.pictures.flame_layout import SAMPLED, TREES, flame_of
from profharness.analysis.pictures.of_files import MOST_FRAMES
from profharness.analysis.pictures.ranks import rank_shares
from profharness.analysis.pictures.records import Flame, Pictures, Strips
from profharness.analysis.run import kernel_pass as passes
from profharness.analysis.time.believed import believed
from profharness.analysis.time.idle import IdleAnalysis
from profharness.analysis.time.steps import device_steps, measured
from profharness.analysis.time.strips import ALL_PIECES, device_strips
from profharness.trace.columns.table import NULL
from profharness.trace.parts.step_numbers import step_numbers
from profharness.understand.steps import stepped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from profharness.analysis.host.line_records import LineTable
    from profharness.analysis.records import Summary
    from profharness.trace.model import Trace
    from profharness.understand.load import Loaded


def pictures_of(
    loaded: Loaded,
    summary: Summary,
    step_range: str = "",
    shown: Trace | None = None,
    flames: tuple[Flame, ...] | None = None,
) -> Pictures:
    """The pictures of what a summary was made of, with the same steps: of a run in the pass that
    speaks for kernels. Without a partition in the summary there is no strip either. `shown` is the
    same trace with Python's functions and modules, which only flame graphs draw, `flames` are these
    where they were made already.
    """
    records = _records(stepped(loaded, step_range))
    if flames is None:
        framed = records if shown is None else _records(replace(loaded, trace=shown))
        flames = tuple(_flames(without_samples(framed)))
    return Pictures(
        strips=Strips() if summary.partition is None else _strips(records),
        flames=(*flames, *_sampled(loaded.trace, summary.host_lines)),
        ranks=()
        if summary.partition is None
        else rank_shares(believed(records), measured(records)),
        bands=() if loaded.manifest is None else bands(loaded.trace, loaded.manifest),
        longest_step=_longest_step(records),
        window=_window(records, summary),
    )


def pictures_of_one(loaded: Loaded, shown: Trace, pieces: int, *, partitioned: bool) -> Pictures:
    """What one of several files gives to the pictures of all: strips of at most `pieces`, where
    there is a partition, and the flame graphs of `shown`, the same records with Python's functions
    and modules. The steps asked for are chosen already.
    """
    return Pictures(
        strips=_strips(loaded.trace, pieces) if partitioned else Strips(),
        flames=(
            *_flames(without_samples(shown), MOST_FRAMES),
            *_sampled(shown, line_table(shown), MOST_FRAMES),
        ),
    )


def _window(trace: Trace, summary: Summary) -> tuple[int, int] | None:
    """From the first to the last instant of the measured window, of a scan of the point that it
    recommends; None where nothing has a time.
    """
    from profharness.report.text.scan_sentences import best_series, recommended_point

    series = best_series(summary)
    point = None if series is None else recommended_point(summary, series)
    when = measured(trace, None if point is None else point.point).everywhere
    return (int(when.start.min()), int(when.end.max())) if len(when) else None


def _longest_step(trace: Trace) -> int | None:
    """The number of the step that took longest; None where no step has a number."""
    if not (step_numbers(trace) != NULL).any():
        return None
    numbered = [step for step in device_steps(trace) if step.number is not None]
    longest = max(numbered, key=lambda step: step.length_ns or 0, default=None)
    return None if longest is None else longest.number


def _records(loaded: Loaded) -> Trace:
    manifest = loaded.manifest
    if manifest is None:
        return loaded.trace
    perturbing = frozenset(record.name for record in manifest.passes if record.perturbing)
    return passes.choose(loaded.trace, perturbing=perturbing, order=manifest.kernel_order())[1]


def _strips(trace: Trace, pieces: int = ALL_PIECES) -> Strips:
    trace = believed(trace)
    return device_strips(trace, measured(trace), IdleAnalysis(trace), pieces)


def _sampled(trace: Trace, table: LineTable | None, most: int = ALL_FRAMES) -> Iterator[Flame]:
    """The flame graph of the stacks of Python that were sampled."""
    if table is not None:
        tree = tree_of(sampled_stacks(trace, table), "stack")
        if (flame := flame_of(tree, SAMPLED, most)) is not None:
            yield flame


def _flames(trace: Trace, most: int = ALL_FRAMES) -> Iterator[Flame]:
    """A flame graph of each kind of tree that the trace holds."""
    for kind in TREES:
        if (flame := flame_of(tree_of(trace, kind), kind, most)) is not None:
            yield flame
