"""`profharness plot`: scans of runs and tables of results as a figure for a paper, a run's
resources over time, or operators and kernels under the roofline.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec

from profharness.errors import InputError, OutputExists, UsageError
from profharness.options.declared import Option
from profharness.options.operator_work import CaptureTraces, Formulas
from profharness.report.plots.paper_style import Style
from profharness.rundir.outputs import refuse_inputs, require_writable
from profharness.rundir.shown.screen import mention

if TYPE_CHECKING:
    from profharness.analysis.run.resources import Resources
    from profharness.report.plots.paper import Curve, Frame
    from profharness.trace.scan_table import ScanTable


class PlotLine(msgspec.Struct, frozen=True, kw_only=True):
    """What a line of `plot` asks for."""

    paths: Annotated[
        tuple[Path, ...],
        Option(
            "Run directories or CSVs of results; with --roofline a run or trace files.",
            argument=True,
            metavar="RUN|CSV|FILE...",
        ),
    ]
    output: Annotated[
        Path,
        Option(
            "Picture to write; its ending says which kind (.pdf, .png, .svg).",
            names=("--output", "-o"),
        ),
    ]
    label: Annotated[tuple[str, ...], Option("What to call each run, in order. Repeatable.")] = ()
    ratio_to: Annotated[str, Option("Add panels with the ratio to the curve of this name.")] = ""
    only: Annotated[str, Option("Draw only curves whose name contains this.")] = ""
    title: Annotated[str, Option("A line above the figure.")] = ""
    style: Annotated[
        Style, Option("cms (the style of the CMS experiment) or plain (matplotlib's, with a grid).")
    ] = Style.CMS
    resources: Annotated[
        bool,
        Option(
            "One run: GPU and memory (CPU and RAM without a GPU) over time, "
            "with a mark at each batch size.",
        ),
    ] = False
    roofline: Annotated[
        bool,
        Option(
            "A run, or trace files together: FLOP/s of operators and kernels over their FLOP per "
            "byte, under the ceilings of the device."
        ),
    ] = False
    formulas: Formulas = ()
    capture_trace: CaptureTraces = ()
    force: Annotated[bool, Option("Overwrite the picture.")] = False


def plot(line: PlotLine) -> None:
    """Draw throughput and latency over a scan, in two panels.

    \b
    profharness plot traces/mi210 traces/a100 -o devices.pdf --ratio-to a100
    profharness plot results.csv -o results.png --only direct
    profharness plot traces/mi210 -o resources.pdf --resources
    profharness plot trace.json.gz -o roofline.pdf --roofline
    """
    paths, output, label = line.paths, line.output, line.label
    refuse_inputs(output, (*paths, *line.formulas, *line.capture_trace))
    if output.exists() and not line.force:
        raise OutputExists(f"{output} exists", "name another with -o, or overwrite it with --force")
    require_writable(output, "name another with -o")
    if line.roofline and (line.resources or label or line.ratio_to or line.only):
        raise UsageError(
            "--roofline is a figure of its own",
            "leave out --resources, --label, --ratio-to and --only",
        )
    if (line.formulas or line.capture_trace) and not line.roofline:
        raise UsageError(
            "--formulas and --capture-trace belong to --roofline",
            "no other figure holds the work of operators",
        )
    if label and len(label) != len(paths):
        raise UsageError(
            f"--label: {len(label)} for {len(paths)} {'inputs' if len(paths) > 1 else 'input'}",
            "give one for each, in order",
        )
    from profharness.report.plots import paper as scan_figure
    from profharness.report.plots.paper_resources import draw_resources

    if line.roofline:
        _draw_roofline(line)
    elif line.resources:
        if len(paths) > 1:
            raise UsageError("--resources draws one run", "name one")
        draw_resources(_resources(paths[0]), output, title=line.title, style=line.style)
    else:
        names = label or tuple(path.resolve().name if len(paths) > 1 else "" for path in paths)
        found, about = _curves(paths, names)
        chosen = [curve for curve in found if line.only in curve.label]
        if not chosen:
            raise UsageError(
                f"--only {line.only}: no curve's name holds that",
                f"the curves are: {'; '.join(curve.label for curve in found)}",
            )
        scan_figure.draw(
            scan_figure.shortened(chosen),
            output,
            replace(
                about,
                ratio_to=line.ratio_to,
                title=line.title,
                style=line.style,
                about=scan_figure.shared_words(chosen),
            ),
        )
    mention(f"made {output}")


def _draw_roofline(line: PlotLine) -> None:
    """Raises InputError where no operator or kernel has a place under the ceilings."""
    from profharness.report.plots.paper_roofline import draw_roofline
    from profharness.report.plots.work_roofline import work_roofline
    from profharness.understand.device_use import use_of
    from profharness.understand.load import check_paths, load
    from profharness.understand.many.use import are_several, use_of_files
    from profharness.understand.operator_work import operator_input
    from profharness.understand.replays import with_captures

    given = operator_input(line.formulas, line.capture_trace)
    check_paths(line.paths)
    if are_several(line.paths):
        use = use_of_files(line.paths, given)
    else:
        loaded = load(line.paths, allow_unaligned=True)  # nothing here compares times of files
        use = use_of(with_captures(loaded, given.captures), given)
    drawn = work_roofline(use)
    if drawn is None:
        needs = "device work: kernels with times" if use is None else use.needs
        raise InputError(
            f"{line.paths[0]}: no operator or kernel whose operations and bytes are both known",
            f"this takes {needs}",
        )
    draw_roofline(drawn, line.output, title=line.title, style=line.style)


def _curves(paths: Sequence[Path], names: Sequence[str]) -> tuple[list[Curve], Frame]:
    """The curves of all inputs, and what holds of all of them. Runs that were measured in different
    ways, or on different numbers of devices, say so in their names. Raises InputError for a run
    without two levels.
    """
    from profharness.readers.border import reading
    from profharness.readers.own.scan_csv import read_scan_csv
    from profharness.report.plots.paper import Frame, curves
    from profharness.trace.scan_table import RATE

    found: list[list[Curve]] = []
    runs: dict[int, _Run] = {}
    units = set()
    for place, (path, name) in enumerate(zip(paths, names, strict=True)):
        if path.is_dir():
            runs[place] = _of_run(path)
            table = runs[place].table
        else:
            with reading(path):
                table = read_scan_csv(path)
        units.add(table.unit)
        found.append([*curves(table, name)])
    for of_each in (
        {place: run.way for place, run in runs.items()},
        {place: _devices(run.devices) for place, run in runs.items()},
    ):
        if len(set(of_each.values())) > 1:
            for place, word in of_each.items():
                found[place] = [replace(one, words=(*one.words, word)) for one in found[place]]
    counts = {run.devices for run in runs.values()}
    same = counts.pop() if len(counts) == 1 and len(runs) == len(paths) else 1
    return [one for each in found for one in each], Frame(
        unit=units.pop() if len(units) == 1 else RATE,
        note=f"throughput of all {same} GPUs together" if same > 1 else "",
    )


def _devices(count: int) -> str:
    return f"{count} GPUs" if count > 1 else "1 GPU" if count else "CPU"


@dataclass(frozen=True)
class _Run:
    """The levels of a run, whether a server stood between, and how many GPUs it used."""

    table: ScanTable
    way: str
    devices: int


def _of_run(path: Path) -> _Run:
    from profharness.analysis.run.series import run_table
    from profharness.understand import report_run as understand

    loaded = understand.load([path])
    summary = understand.summarise(loaded)
    table = run_table(summary.points, str(path))
    if table is None:
        raise InputError(
            f"{path}: no two levels were measured",
            "scan several batch sizes: profharness run --batch-sizes 4..2048",
        )
    return _Run(
        table,
        "served" if any(point.mode for point in summary.points) else "direct",
        len(summary.devices),
    )


def _resources(path: Path) -> Resources:
    """From the run's telemetry and the points of its bare pass. Raises InputError for a run without
    telemetry.
    """
    from profharness.analysis.run.resources import columns
    from profharness.understand import report_run as understand

    loaded = understand.load([path])
    found = columns(loaded.trace, loaded.manifest)
    if found is None:
        raise InputError(f"{path}: this run holds no telemetry", "run it with --telemetry auto")
    return found
