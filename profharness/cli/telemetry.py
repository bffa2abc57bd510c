"""`profharness telemetry`: sample by itself, beside a command or for some time, and judge from that
alone.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from profharness.errors import UsageError
from profharness.options.declared import Option
from profharness.rundir.shown.screen import mention

if TYPE_CHECKING:
    from profharness.measure.exposing.address import Address


class TelemetryLine(msgspec.Struct, frozen=True, kw_only=True):
    """What a line of `telemetry` asks for."""

    output: Annotated[
        Path | None,
        Option("Folder for the files (default traces/<time>-telemetry).", names=("--output", "-o")),
    ] = None
    hz: Annotated[float, Option("Samples per second.")] = 10.0
    source: Annotated[
        str,
        Option(
            "auto, cpu, amd (our own sysfs reader), nvml, or amdsmi (AMD's library).",
            examples=("auto", "cpu", "amd", "nvml", "amdsmi"),
        ),
    ] = "auto"
    device_counters: Annotated[
        bool,
        Option(
            "Also count on the devices (AMD MI200, MI300, MI350): compute units active, occupancy, "
            "matrix cores, memory fabric."
        ),
    ] = False
    device_counters_hz: Annotated[
        float, Option("Samples of these counters per second, at most 10.")
    ] = 2.0
    device_counters_from: Annotated[
        str,
        Option(
            "Take hardware counters of the devices from an exporter on the node (omnistat, AMD's "
            "Device Metrics Exporter): http://HOST:PORT/metrics, or from RDC's daemon: rdci or "
            "rdci:HOST:PORT."
        ),
    ] = ""
    seconds: Annotated[
        float | None, Option("How long, without a command (default: until Ctrl-C).")
    ] = None
    idle_seconds: Annotated[
        float,
        Option("Sample this long before the command, to measure what the idle device draws."),
    ] = 0.0
    openmetrics: Annotated[
        str,
        Option(
            "Serve the present values for Prometheus at this port of loopback, or at HOST:PORT. "
            "Without a command and -o nothing is kept.",
            metavar="[HOST:]PORT",
        ),
    ] = ""
    live: Annotated[bool, Option("Show the values while sampling.")] = False
    json: Annotated[bool, Option("Print one JSON object.")] = False
    force: Annotated[bool, Option("Overwrite the files of an earlier call.")] = False


def telemetry(ctx: typer.Context, line: TelemetryLine) -> int:
    """Sample telemetry beside a command (after --) or for some time, and say what holds the device
    back.

    \b
    profharness telemetry -o log --live -- python train.py
    profharness telemetry -o log --seconds 30
    profharness telemetry -o log --idle-seconds 5 -- python train.py
    profharness telemetry -o log --live --device-counters -- python train.py
    profharness telemetry --openmetrics 9400
    """
    from profharness.cli.running import left_caps
    from profharness.measure.claims.holding import next_of
    from profharness.measure.telemetry_only import Settings, monitor, watch
    from profharness.report.text.monitoring import conclude, document, text

    command = ctx.obj.words
    _check(line, command, given=ctx.obj.given)
    _check_idle(line.idle_seconds, command)
    _check_counters(line)
    exposed = _exposed(line)
    kept = not line.openmetrics or bool(command) or line.output is not None
    settings = Settings(
        folder=line.output or (next_of(_default(), shared=True) if kept else Path()),
        source=line.source,
        hz=line.hz,
        command=command,
        seconds=line.seconds,
        force=line.force,
        idle_seconds=line.idle_seconds,
        counters_hz=line.device_counters_hz if line.device_counters else 0.0,
        exporter=line.device_counters_from,
    )
    left_caps.set_again()
    with _looking(line, exposed, followed=bool(command)) as look:
        if not kept:
            watch(settings, look)
            return 0
        monitored = monitor(settings, look)
    concluded = conclude(
        monitored.trace,
        monitored.start_ns,
        monitored.end_ns,
        cores=_cores(followed=bool(command)),
        followed=bool(command),
        idle_ns=monitored.idle_ns,
    )
    if monitored.trouble:
        mention(f"profharness: {monitored.trouble}")
    if line.json:
        typer.echo(document(concluded, monitored.files).decode())
    else:
        typer.echo(
            text(concluded, monitored.files, shutil.get_terminal_size((110, 40)).columns), nl=False
        )
    return monitored.exit_status


def _exposed(line: TelemetryLine) -> Address | None:
    if not line.openmetrics:
        return None
    from profharness.measure.exposing.address import parse_address

    return parse_address(line.openmetrics)


@contextmanager
def _looking(
    line: TelemetryLine, exposed: Address | None, *, followed: bool
) -> Iterator[Callable[[Path], None]]:
    """What is done with the samples while they are taken: shown, served, both or neither."""
    from profharness.report.text.live import LiveView

    looks: list[Callable[[Path], None]] = []
    with ExitStack() as stack:
        if exposed is not None:
            from profharness.measure.exposing.server import Exposition

            exposition = stack.enter_context(Exposition(exposed, line.hz, followed=followed))
            mention(f"profharness: OpenMetrics at {exposition.address.url}")
            looks.append(exposition.look)
        if line.live:
            looks.append(stack.enter_context(LiveView(sys.stderr, line.hz)).look)

        def look(samples: Path) -> None:
            for one in looks:
                one(samples)

        yield look


def _cores(*, followed: bool) -> int:
    """CPUs that the command may use; those of the node where there is none."""
    return len(os.sched_getaffinity(0)) if followed else os.cpu_count() or 1


def _check(line: TelemetryLine, command: tuple[str, ...], *, given: bool) -> None:
    from profharness.layers.telemetry import names

    source, hz, seconds = line.source, line.hz, line.seconds
    if source not in names() or source == "off":
        raise UsageError(
            f"--source: there is no source {source!r}",
            f"known: {', '.join(name for name in names() if name != 'off')}",
        )
    if not 0.1 <= hz <= 1000:
        raise UsageError(f"--hz: {hz:g} is outside 0.1 to 1000", "10 suits most runs")
    if given and not command:
        raise UsageError(
            "nothing stands after --",
            "write the command there: profharness telemetry -- python train.py",
        )
    if seconds is not None and (command or seconds <= 0):
        raise UsageError(
            "--seconds goes without a command, and above 0", "a command is sampled until it ends"
        )


def _check_counters(line: TelemetryLine) -> None:
    from profharness.layers import exporter

    if line.device_counters_from:
        exporter.check(line.device_counters_from, counts=line.device_counters)
    if not 0.1 <= line.device_counters_hz <= 10:
        raise UsageError(
            f"--device-counters-hz: {line.device_counters_hz:g} is outside 0.1 to 10",
            "2 suits most runs: each sample costs up to 3 ms per device",
        )


def _check_idle(seconds: float, command: tuple[str, ...]) -> None:
    from profharness.layers.telemetry import IDLE_LIMIT_S

    if not 0 <= seconds <= IDLE_LIMIT_S:
        raise UsageError(
            f"--idle-seconds: {seconds:g} is outside 0 to {IDLE_LIMIT_S:g}",
            "5 is enough for most sensors; leave it out to skip the idle measurement",
        )
    if seconds and not command:
        raise UsageError(
            "--idle-seconds needs a command: without one nothing says when the device is at rest",
            "write it after --: profharness telemetry --idle-seconds 5 -- python train.py",
        )


def _default() -> Path:
    base = Path(os.environ.get("PROFHARNESS_OUTPUT", "traces"))
    return base / f"{datetime.now(UTC):%Y%m%dT%H%M%S}-telemetry"
