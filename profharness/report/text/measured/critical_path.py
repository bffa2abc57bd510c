"""Critical paths and what-ifs as lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from profharness.analysis.critical.classes import HOST_PREFIX, LABELS
from profharness.analysis.critical.records import CriticalPath, Forecast, PathRow, RankPath
from profharness.findings import ways
from profharness.report.text.folding import fold_kernel_name
from profharness.rundir.shown.screen import lines_text, one_line
from profharness.units import format_exact_ns, format_ns, format_number, format_share

ROWS = 10
_NAME = 80
_SEEN = 0.0005
NONE = (
    "critical path  none: no process recorded operators or host calls, and a path needs to know "
    f"what launched the work (record with {ways.CALLS})"
)


def critical_path_text(path: CriticalPath | None) -> str:
    """The paths of all processes: by class, the largest rows, and what changes are worth."""
    return lines_text(_lines(path))


def _lines(path: CriticalPath | None) -> Iterator[str]:
    if path is None:
        yield NONE
        return
    for process in path.processes:
        yield from _process_lines(process)


def _process_lines(path: RankPath) -> Iterator[str]:
    yield one_line(f"critical path  {_title(path)}")
    parts = [
        (format_share(part.ns / path.window_ns), format_ns(part.ns), LABELS[key])
        for key, part in path.segments.items()
        if part.ns >= _SEEN * path.window_ns
    ]
    yield from _columns(parts)
    shown = [row for row in path.rows[:ROWS] if row.share >= _SEEN and row.name]
    if shown:
        yield "  most of it"
        yield from _columns(
            (format_share(row.share), format_ns(row.ns), _row(row)) for row in shown
        )
    if path.what_if:
        yield from _what_if_lines(path.what_if)


def _title(path: RankPath) -> str:
    """What the path is of: its process, its window, and the steps' mean and spread."""
    where = f"{path.process}, {path.point}" if path.point else path.process
    words = f"{where}: {format_ns(path.window_ns)} of {path.window}"
    lengths = [step.window_ns for step in path.steps]
    if len(lengths) > 1:
        mean = sum(lengths) / len(lengths)
        words += (
            f", a step {format_ns(mean)} on average "
            f"({format_ns(min(lengths))} to {format_ns(max(lengths))})"
        )
    return words


def _row(row: PathRow) -> str:
    on_host = row.kind.startswith(HOST_PREFIX)
    name = one_line(row.name, _NAME) if on_host else fold_kernel_name(row.name, _NAME)
    by = f" of {fold_kernel_name(row.operator, _NAME)}" if row.operator else ""
    times = "once" if row.segments == 1 else f"{format_number(row.segments)} times"
    return f"{LABELS[row.kind]}: {name}{by}, {times}"


def _columns(rows: Iterable[tuple[str, str, str]]) -> Iterator[str]:
    for share, time, words in rows:
        yield one_line(f"  {share:>8}  {time:>10}  {words}")


def _what_if_lines(forecasts: tuple[Forecast, ...]) -> Iterator[str]:
    check = forecasts[0]
    off = format_exact_ns(abs(check.residual_ns))
    yield (
        "  what if  (replayed without a change: "
        f"{format_ns(check.forecast_ns)}, {off} off what was measured)"
    )
    for made in forecasts[1:]:
        yield one_line(f"    {forecast_text(made)}")


def forecast_text(made: Forecast) -> str:
    """`kernel:gemm=0.5: step 4.270 ms -> 3.610 ms (-15.4 %), next limit: host: operators`."""
    unit = "step" if made.steps else "window"
    share = max(made.steps, 1)
    gain = made.forecast_ns / made.window_ns - 1
    words = (
        f"{made.change}: {unit} {format_ns(made.window_ns / share)} -> "
        f"{format_ns(made.forecast_ns / share)} ({_signed(gain)})"
    )
    if not made.touched:
        return f"{words}: nothing on this trace is touched by it"
    if made.at_most_ns and made.at_most_ns > made.window_ns - made.forecast_ns:
        words += f", at most {_signed(-made.at_most_ns / made.window_ns)} by its share of the path"
    words += f"; next limit: {LABELS[made.next_limit]}, {format_share(made.next_limit_share)}"
    if made.measured_ns is not None and made.error is not None:
        words += (
            f"; measured {format_ns(made.measured_ns / share)}, "
            f"the forecast is {_signed(made.error)} off"
        )
    if made.from_scan_ns is not None:
        words += (
            f"; a line through the scan's other sizes gives {format_ns(made.from_scan_ns / share)}"
        )
        if made.from_scan_error is not None:
            words += f", {_signed(made.from_scan_error)} off"
    return words


def _signed(share: float) -> str:
    text = format_share(abs(share))
    return f"{'-' if share < 0 else '+'}{text}"
