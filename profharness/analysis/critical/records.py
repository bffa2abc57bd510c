"""Critical paths and forecasts as typed records; their JSON form is that of docs/json.md#metrics.
Nothing is computed here.
"""

from __future__ import annotations

import msgspec

KEPT_ROWS = 100


class PathPart(msgspec.Struct, frozen=True, kw_only=True):
    """What one class of time holds of a path: `ns` of it in so many `segments`."""

    ns: int
    segments: int


class PathRow(msgspec.Struct, frozen=True, kw_only=True):
    """Segments of one class and name: a kernel, an operator, a call, a range or a Python frame.
    `operator` launched the work, where one did; `share` is that of the window.
    """

    kind: str
    name: str
    operator: str = ""
    ns: int
    share: float
    segments: int


class PathStep(msgspec.Struct, frozen=True, kw_only=True):
    """The path inside of one step, by class; the parts sum to `window_ns`."""

    step: str
    number: int | None
    start_ns: int
    window_ns: int
    segments: dict[str, int]


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """What a change would make of a window. `residual_ns` is what the rerun of no change misses
    the measured window by; `next_limit` is the class that then holds most of the path.

    `at_most_ns` is the time that the change takes from the measured path, which no forecast can
    gain more than; None where the change takes a dependence away. `measured_ns` is the window as it
    was measured where the change was made (another point of the scan), and `error` the forecast
    against it; None without such a point. `from_scan_ns` is what a line through the step times of
    the scan's other batch sizes gives, with its error.
    """

    change: str
    window_ns: int
    forecast_ns: int
    steps: int
    at_most_ns: int | None
    next_limit: str
    next_limit_share: float
    touched: int
    residual_ns: int
    note: str = ""
    measured_ns: float | None = None
    error: float | None = None
    from_scan_ns: float | None = None
    from_scan_error: float | None = None


class RankPath(msgspec.Struct, frozen=True, kw_only=True):
    """The critical path of one process. `segments` holds every class that occurs, largest first;
    they sum to `window_ns` exactly. `rows` are the `KEPT_ROWS` largest.
    """

    process: str
    point: str = ""
    rank: int | None = None
    window: str
    start_ns: int
    window_ns: int
    segments: dict[str, PathPart]
    rows: tuple[PathRow, ...]
    steps: tuple[PathStep, ...]
    what_if: tuple[Forecast, ...] = ()

    @property
    def step_ns(self) -> float | None:
        """The window by its steps; None where no steps are marked."""
        return self.window_ns / len(self.steps) if self.steps else None


class CriticalPath(msgspec.Struct, frozen=True, kw_only=True):
    """The paths of all processes (and points) of a run or file; the parts sum over them."""

    window_ns: int
    segments: dict[str, PathPart]
    processes: tuple[RankPath, ...]
