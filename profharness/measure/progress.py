"""Progress of a run's passes on stderr: live bars on a terminal, one line per pass elsewhere,
nothing when quiet.

The engine calls three methods; what is drawn is decided once, by `open_progress`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self, TextIO

from profharness.rundir.shown.screen import console, guard_live
from profharness.stats.estimate import Estimate
from profharness.units import format_clock, format_number, format_share_interval

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import Task, TaskID

_BAR = 20
_HEIGHTS = "▁▂▃▄▅▆▇█"
_SHOWN = 16
"""Points of the curve that stands beside a bar, the last ones."""


def _nothing() -> str:
    return ""


@dataclass(frozen=True)
class Beside:
    """What else is known when a point is done: its `rate` per second of `unit`, the point that
    follows, and, asked for only where it is shown, what telemetry says of the time since the last
    point.
    """

    rate: float | None = None
    unit: str = ""
    following: str = ""
    telemetry: Callable[[], str] = _nothing


NOTHING_BESIDE = Beside()


class Progress(Protocol):
    """What the engine reports while it measures. A context manager, so that a live display is
    always closed.
    """

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def pass_started(self, name: str, points: int | None) -> None:
        """A pass begins; `points` is None when an adaptive scan does not know its number yet."""

    def point_done(self, name: str, point: str, done: int, beside: Beside = NOTHING_BESIDE) -> None:
        """`done` points of the pass are finished, `point` (as people call it) being the last."""

    def pass_done(self, name: str, seconds: float, overhead: Estimate | None) -> None:
        """The pass ended after `seconds`; `overhead` against the bare pass where it is known."""


def open_progress(stream: TextIO, *, quiet: bool = False) -> Progress:
    """Live bars when `stream` is a terminal, one line per pass when not, nothing when `quiet`."""
    if quiet:
        return NullProgress()
    return TerminalProgress(stream) if stream.isatty() else LogProgress(stream)


class NullProgress:
    """For --quiet and --json: says nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None

    def pass_started(self, name: str, points: int | None) -> None:
        """Say nothing."""

    def point_done(self, name: str, point: str, done: int, beside: Beside = NOTHING_BESIDE) -> None:
        """Say nothing."""

    def pass_done(self, name: str, seconds: float, overhead: Estimate | None) -> None:
        """Say nothing."""


class LogProgress:
    """One line when a pass ends: `bare 10/10 points, 0:58`. For log files and pipes: nothing is
    overwritten.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._done: dict[str, int] = {}
        self._points: dict[str, int | None] = {}
        self._last: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for name, done in self._done.items():
            last = f", the last being {self._last[name]}" if name in self._last else ""
            self._write(f"{name}: stopped after {_count(done, self._points[name])}{last}")

    def pass_started(self, name: str, points: int | None) -> None:
        """Remember the number; nothing is printed yet."""
        self._points[name], self._done[name] = points, 0

    def point_done(
        self,
        name: str,
        point: str,
        done: int,
        beside: Beside = NOTHING_BESIDE,  # noqa: ARG002  a log has a line per pass
    ) -> None:
        """Remember how far the pass is."""
        self._done[name], self._last[name] = done, point

    def pass_done(self, name: str, seconds: float, overhead: Estimate | None) -> None:
        """Print the pass's line."""
        done = self._done.pop(name, 0)
        self._write(
            f"{name}: {_count(done, self._points.get(name))}, "
            f"{format_clock(seconds)}{f', {cost}' if (cost := _overhead(overhead)) else ''}"
        )

    def _write(self, line: str) -> None:
        self._stream.write(f"{line}\n")
        self._stream.flush()


class TerminalProgress:
    """One bar per pass: points done of all, elapsed, then the point, the time left and what stands
    `Beside`, then the overhead.
    """

    def __init__(self, stream: TextIO, now: Callable[[], float] = time.monotonic) -> None:
        self._bars = _rich_bars(stream, now)
        self._now = now
        self._tasks: dict[str, TaskID] = {}
        self._points: dict[str, int | None] = {}
        self._started: dict[str, float] = {}
        self._rates: dict[str, list[float]] = {}

    def __enter__(self) -> Self:
        self._bars.start()
        guard_live()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bars.stop()

    def refresh(self) -> None:
        """Draw the present state at once; without it the display follows four times a second."""
        self._bars.refresh()

    def pass_started(self, name: str, points: int | None) -> None:
        """Add the pass's bar."""
        self._started[name], self._points[name] = self._now(), points
        self._tasks[name] = self._bars.add_task(name, total=points, note="", seconds=None)

    def point_done(self, name: str, point: str, done: int, beside: Beside = NOTHING_BESIDE) -> None:
        """Move the bar; the time left is the pass's mean time per point times the points left. Then
        the live page in short: the rate, the curve so far, what is next, the telemetry.
        """
        elapsed, points = self._now() - self._started[name], self._points[name]
        notes = [point]
        if points and 0 < done < points:
            notes.append(f"{format_clock(elapsed / done * (points - done))} left")
        rates = self._rates.setdefault(name, [])
        if beside.rate is not None:
            rates.append(beside.rate)
            curve = f" {_curve(rates)}" if len(rates) > 1 else ""
            notes.append(f"{_rate(beside.rate)} {beside.unit}{curve}")
        if beside.following:
            notes.append(f"next {beside.following}")
        notes.append(beside.telemetry())
        note = "   ".join(filter(None, notes))
        self._bars.update(self._tasks[name], completed=done, note=note)

    def pass_done(self, name: str, seconds: float, overhead: Estimate | None) -> None:
        """Freeze the bar at its time and show the overhead."""
        self._bars.update(self._tasks[name], note=_overhead(overhead), seconds=seconds)
        self._bars.stop_task(self._tasks[name])


def _rich_bars(stream: TextIO, now: Callable[[], float]) -> RichProgress:
    from rich.progress import Progress as Bars
    from rich.progress import ProgressColumn, TextColumn
    from rich.table import Column
    from rich.text import Text

    class Drawn(ProgressColumn):
        """A column drawn by a function of the task."""

        def __init__(self, draw: Callable[[Task], str], style: str = "") -> None:
            super().__init__(Column(no_wrap=True, overflow="ellipsis"))
            self._draw, self._style = draw, style

        def render(self, task: Task) -> Text:
            return Text(self._draw(task), style=self._style)

    return Bars(
        TextColumn("{task.description}", markup=False),
        Drawn(_bar, "cyan"),
        Drawn(_task_count),
        Drawn(_clock),
        Drawn(lambda task: str(task.fields["note"])),
        console=console(stream),
        get_time=now,
        refresh_per_second=4,
    )


def _bar(task: Task) -> str:
    full = 0 if not task.total else min(int(_BAR * task.completed / task.total), _BAR)
    return "█" * full + "░" * (_BAR - full)


def _curve(rates: Sequence[float]) -> str:
    """The last rates as heights over zero."""
    shown = rates[-_SHOWN:]
    top = max(shown)
    if top <= 0:
        return ""
    return "".join(_HEIGHTS[min(max(round(8 * rate / top) - 1, 0), 7)] for rate in shown)


def _rate(rate: float) -> str:
    return format_number(rate) if rate >= 1000 else f"{rate:.3g}"


def _task_count(task: Task) -> str:
    done = int(task.completed)
    return f"{done:>2}" if task.total is None else f"{done:>2}/{int(task.total)}"


def _clock(task: Task) -> str:
    seconds = task.fields["seconds"]
    return f"{format_clock(task.elapsed or 0 if seconds is None else seconds):>6}"


def _count(done: int, points: int | None) -> str:
    if points is None:
        return f"{done} {'point' if done == 1 else 'points'}"
    return f"{done}/{points} {'point' if points == 1 else 'points'}"


def _overhead(overhead: Estimate | None) -> str:
    if overhead is None or overhead.value is None:
        return ""
    return f"overhead {format_share_interval(overhead.value, overhead.low, overhead.high)}"
