"""Telemetry by itself: the run's sampler beside a command, or for some time, without passes, hooks
or manifest.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from profharness.errors import InputError, OutputExists, Unavailable
from profharness.launchers import Job
from profharness.launchers.between import Terminated, ended_by_signals
from profharness.launchers.command import Command
from profharness.launchers.local import LocalLauncher
from profharness.launchers.sidecar import Sidecar
from profharness.layers import exporter
from profharness.layers.device_counters import NAME as COUNTING
from profharness.layers.telemetry import (
    UNNAMED,
    Beside,
    Counting,
    Ready,
    let_rest,
    sampler_command,
    spec_json,
)
from profharness.measure.exposing.forgetting import Forgotten
from profharness.rundir import clock_files, telemetry
from profharness.rundir.outputs import make_folder
from profharness.rundir.private.folders import private_folder
from profharness.trace.device_counters import with_figures
from profharness.trace.model import Trace
from profharness.writers import resource_log, telemetry_parquet

_WORKING = (
    "spec.json",
    "roots",
    "ready.json",
    "samples.bin",
    "done.json",
    "idle.json",
    "log",
    "clocks.jsonl",
)

_GROWING = ("samples.bin", "clocks.jsonl")


@dataclass(frozen=True)
class Settings:
    """`source` as `--telemetry` of a run; without `command`, sampling lasts `seconds`, or until
    Ctrl-C; before it the devices rest for `idle_seconds`. `counters_hz` is how often hardware
    counters of the devices are read, 0 for not at all; `exporter` is an address that has them.
    """

    folder: Path
    source: str = "auto"
    hz: float = 10.0
    command: tuple[str, ...] = ()
    seconds: float | None = None
    force: bool = False
    idle_seconds: float = 0.0
    counters_hz: float = 0.0
    exporter: str = ""


@dataclass(frozen=True)
class Monitored:
    """The samples (on CLOCK_MONOTONIC), the time that counts, the command's status, and the files
    that were made.

    `idle_ns` is when the devices rested before it; two zeros without that.
    """

    trace: Trace
    start_ns: int
    end_ns: int
    exit_status: int
    files: tuple[Path, ...]
    trouble: str = ""
    idle_ns: tuple[int, int] = (0, 0)


def monitor(settings: Settings, look: Callable[[Path], None]) -> Monitored:
    """Sample until the command ends (or the time is over); `look` gets the growing file about
    twenty times a second.

    Raises OutputExists, and Unavailable for a source that was asked for by name and gives nothing
    here.
    """
    host = socket.gethostname()
    folder = _emptied_folder(settings, host)
    sampler = _started(settings, folder, host)
    try:
        _require_ready(settings, sampler, folder, host)
        idle = _rest(settings, folder, host)
        start = time.monotonic_ns()
        status = _wait(settings, folder, host, look, sampler)
        end = time.monotonic_ns()
        trouble = "" if sampler.alive() else f"the sampler died: {sampler.last_words()}"
    except Unavailable:
        sampler.stop()
        _clean(folder, host)
        raise
    finally:
        stopped = sampler.stop()
    if stopped and not trouble:
        trouble = f"the sampler ended with status {stopped}: {sampler.last_words()}"
    raw = telemetry.read_raw(folder / f"{host}.samples.bin")
    trace = with_figures(raw)
    telemetry_parquet.write(raw, folder / f"{host}.parquet")
    return Monitored(
        trace, start, end, status, _products(trace, folder, host, settings.hz), trouble, idle
    )


def _started(settings: Settings, folder: Path, host: str) -> Sidecar:
    if settings.exporter:
        exporter.require(settings.exporter)
    counting = Counting(settings.counters_hz) if settings.counters_hz else None
    (folder / f"{host}.spec.json").write_bytes(
        spec_json(folder, host, settings.source, settings.hz, Beside(counting, settings.exporter))
    )
    (folder / f"{host}.roots").touch()
    return Sidecar(sampler_command(folder / f"{host}.spec.json"), folder / f"{host}.log")


def _require_ready(settings: Settings, sampler: Sidecar, folder: Path, host: str) -> None:
    if not sampler.wait_ready(folder / f"{host}.ready.json"):
        raise Unavailable(
            f"the telemetry sampler did not start: {sampler.last_words()}",
            f"see {folder / f'{host}.log'}",
        )
    _require(settings.source, folder / f"{host}.ready.json")
    if settings.counters_hz:
        _require_counters(folder / f"{host}.ready.json")


def watch(settings: Settings, look: Callable[[Path], None]) -> None:
    """Sample for `look` alone until Ctrl-C, SIGTERM or the end of `seconds`, and keep nothing: the
    file is in a private folder, and what `look` has seen is given back to the file system.

    Raises Unavailable as `monitor` does, and where the sampler ends by itself.
    """
    host = socket.gethostname()
    with private_folder() as folder:
        sampler = _started(settings, folder, host)
        try:
            _require_ready(settings, sampler, folder, host)
            old = [Forgotten(folder / f"{host}.{name}") for name in _GROWING]

            def look_and_forget(samples: Path) -> None:
                look(samples)
                for one in old:
                    one.forget()

            _wait(settings, folder, host, look_and_forget, sampler)
            if not sampler.alive():
                raise Unavailable(
                    f"the telemetry sampler ended by itself: {sampler.last_words()}",
                    "start it again; `profharness doctor` says which sources work",
                )
        finally:
            sampler.stop()


def _emptied_folder(settings: Settings, host: str) -> Path:
    """The folder, without files of an earlier sampling of this host. Raises OutputExists, unless
    forced.
    """
    folder = settings.folder
    make_folder(folder, "name another place with -o")
    earlier = [
        path
        for path in folder.glob("*")
        if path.name.startswith(f"{host}.") or path.name.startswith("ResourceLog.")
    ]
    if earlier and not settings.force:
        raise OutputExists(
            f"{folder} holds the telemetry of an earlier call ({earlier[0].name})",
            "name another folder with -o, or overwrite with --force",
        )
    for path in earlier:
        path.unlink()
    return folder.absolute()


def _require(source: str, ready: Path) -> None:
    sources = msgspec.json.decode(ready.read_bytes(), type=Ready)
    why = sources.why_missing(source) if source not in UNNAMED else ""
    if why and source == "amdsmi" and not sources.why_missing("amd"):
        why = ""  # our own reader took its place, as a finding says
    if why:
        raise Unavailable(
            f"--source {source} cannot be used here: {why}",
            "`profharness doctor` lists what works; --source auto takes what there is",
        )


def _require_counters(ready: Path) -> None:
    why = msgspec.json.decode(ready.read_bytes(), type=Ready).why_missing(COUNTING)
    if why:
        raise Unavailable(
            f"--device-counters cannot be used here: {why}",
            "leave it out: wave_fill of the driver's own telemetry says how full AMD devices are",
        )


def _rest(settings: Settings, folder: Path, host: str) -> tuple[int, int]:
    """From when to when (CLOCK_MONOTONIC)."""
    if not settings.idle_seconds:
        return 0, 0
    start = time.monotonic_ns()
    let_rest(folder, host, settings.idle_seconds)
    return start, time.monotonic_ns()


def _wait(
    settings: Settings,
    folder: Path,
    host: str,
    look: Callable[[Path], None],
    sampler: Sidecar,
) -> int:
    """Run the command, or let the time pass; the command's exit status. Without a command SIGTERM
    and SIGHUP end it as Ctrl-C does, and so does the sampler's own end.
    """
    samples = folder / f"{host}.samples.bin"

    def follow(pid: int) -> None:
        with (folder / f"{host}.roots").open("a") as file:
            file.write(f"{pid}\n")

    if settings.command:
        return (
            LocalLauncher()
            .run(Job(Command(settings.command), is_command=True), follow, lambda: look(samples))
            .exit_status
        )
    end = None if settings.seconds is None else time.monotonic() + settings.seconds
    try:
        with ended_by_signals():
            while sampler.alive() and (end is None or time.monotonic() < end):
                time.sleep(0.05 if end is None else max(min(0.05, end - time.monotonic()), 0))
                look(samples)
    except Terminated:
        pass  # as a service is ended
    except KeyboardInterrupt:
        sys.stderr.write(
            "\n"
        )  # behind the terminal's ^C: this is how sampling without a command is ended
    return 0


def _clean(folder: Path, host: str, keep: tuple[str, ...] = ()) -> None:
    """The sampler's working files go."""
    for suffix in _WORKING:
        if suffix not in keep:
            (folder / f"{host}.{suffix}").unlink(missing_ok=True)


def _products(trace: Trace, folder: Path, host: str, hz: float) -> tuple[Path, ...]:
    """The Parquet table, which is there already, the clock readings and the classic log; the
    sampler's working files go.
    """
    table = folder / f"{host}.parquet"
    readings = clock_files.read_clocks(folder / f"{host}.clocks.jsonl")
    if not readings:
        raise InputError(
            f"{folder / f'{host}.clocks.jsonl'} holds no reading",
            "the sampler was killed as it started",
        )
    machine = resource_log.Machine(
        os.cpu_count() or 1,
        os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE"),
        readings[0].realtime_ns - readings[0].monotonic_ns,
    )
    log, about = resource_log.write(
        trace, folder, machine, 0 if trace.devices else None, round(1e9 / min(hz, 10.0))
    )
    _clean(folder, host, keep=("clocks.jsonl",))
    return table, folder / f"{host}.clocks.jsonl", log, about
