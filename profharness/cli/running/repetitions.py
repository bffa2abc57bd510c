"""What `--dry-run` says of repetitions and devices: how often each point is really measured, by how
many trials or for how long, and whether the device that was asked for is here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from profharness.cli.running.plan_of_axes import axes_lines
from profharness.measure.plan import RunPlan
from profharness.options.request import Request
from profharness.scans.command import CommandScan
from profharness.scans.contract import Point
from profharness.scans.settings_scan import SettingsScan
from profharness.supervise.pass_plan import PassPlan

_LABEL = "measurements    "
_INDENT = " " * len(_LABEL)
_DEVICE = "device          "


def measured_points(prepared: RunPlan, plan: PassPlan) -> tuple[Point, ...]:
    """The points of one pass in their order, as far as they are known before the run: a pass under
    layers has each once, with few trials.
    """
    scan = prepared.scan
    assert scan is not None
    if plan.layers and not scan.adaptive:
        return tuple(point for backend in plan.targets for point in scan.profiled(backend))
    return tuple(point for point in scan.points if point.backend in plan.targets)


def measurement_lines(prepared: RunPlan) -> Iterator[str]:
    """A line per pass of a scan: `8: 6 points, 2 of them again at the end (b1, b32), each at least
    100 trials and 2 s`.
    """
    if prepared.scan is None:
        return
    if isinstance(prepared.scan, CommandScan | SettingsScan):
        yield from axes_lines(prepared, prepared.scan)
        if isinstance(prepared.scan, CommandScan):
            return
    label = _LABEL
    for plan in prepared.schedule.passes:
        points = measured_points(prepared, plan)
        each = _each(prepared.request, under_layers=bool(plan.layers))
        if isinstance(prepared.scan, SettingsScan):
            counted = "1 to 3 points" if plan.layers else f"{prepared.scan.executions} levels"
        elif prepared.scan.adaptive or not points:
            counted = "as many as the search asks for"
        else:
            counted = _counted(points)
        yield f"{label}{plan.name}: {counted}, each {each}"
        label = _INDENT


def _counted(points: Sequence[Point]) -> str:
    first = [point for point in points if not point.repeat]
    again = [point.id for point in points if point.repeat]
    total = f"{len(points)} measurements of " if again else ""
    repeated = f" ({', '.join(again)} again at the end)" if again else ""
    return f"{total}{len(first)} point{'s' * (len(first) != 1)}{repeated}"


def _each(request: Request, *, under_layers: bool) -> str:
    """How long one measurement takes, or how many trials it has."""
    if request.served or request.pinned:
        if not under_layers:
            return f"{request.time:g} s after at least {request.warmup_time:g} s of warm-up"
        return "in a shorter window"
    if under_layers:
        return _trials(request.profile_trials)
    dropped = (
        "after the warm-up"
        if request.warmup == "auto"
        else f"after {_trials(int(request.warmup))} of warm-up"
    )
    least = f" and {request.min_seconds:g} s" if request.min_seconds else ""
    return f"at least {_trials(request.trials)}{least}, {dropped}"


def _trials(count: int) -> str:
    return f"{count} trial{'s' * (count != 1)}"


def device_lines(prepared: RunPlan) -> Iterator[str]:
    """Where the workload of a scan would run, and that a device which was asked for is missing.
    Nothing is said of servers and nodes elsewhere.
    """
    request = prepared.request
    if prepared.scan is None or request.command or request.url or request.launcher == "slurm":
        return
    here = prepared.environment.accelerators
    names = ", ".join(dict.fromkeys(device.name or device.kind for device in here))
    where = "the node planned for" if prepared.elsewhere else "this node"
    if request.device == "auto":
        yield _DEVICE + (f"auto: {names}" if here else f"auto: the CPU, as {where} has no GPU")
        return
    missing = [
        name for name in request.device.split(",") if name != "cpu" and _number(name) >= len(here)
    ]
    if missing:
        has = f"has {len(here)} ({names})" if here else "has no GPU that its driver shows"
        yield (
            f"{_DEVICE}{', '.join(missing)}: missing, {where} {has}; planned all the same, "
            "and a run here would fail"
        )


def _number(device: str) -> int:
    number = device.partition(":")[2]
    return int(number) if number.isdigit() else 0
