"""What works on this node and what is missing, with the fix: looks, and with `try_layers` really
runs each layer.

A trial goes through the same path as any run (launcher, hooks, readers), with a tiny program in a
temporary folder.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from profharness import families, layers, readers, scans
from profharness.analysis import verdict
from profharness.analysis.operators import table as formulas
from profharness.errors import ProfharnessError, Unavailable
from profharness.findings import Finding
from profharness.launchers.command import Command
from profharness.launchers.local import LocalLauncher
from profharness.launchers.wrappers import wrappers_dir
from profharness.layers.clashes import Planned, clashes, hanging_import
from profharness.layers.contract import Layer
from profharness.measure import engine
from profharness.measure.caps.left import LeftCaps, left_caps
from profharness.measure.planning import PROBE_S, plan_run
from profharness.measure.progress import NullProgress
from profharness.node import access
from profharness.node import probe as environment
from profharness.node.access import AccessState
from profharness.node.probe import Environment
from profharness.options.request import Request
from profharness.secrets import scrub
from profharness.telemetry import sources
from profharness.telemetry.checkup import source_states
from profharness.trace.model import Trace
from profharness.understand import report_run as understand

_HERE = re.compile(
    r"; `profharness doctor[^`]*` shows what works here$"
)  # a reader of its own answer is not sent to it
_IMPORT_S = 60.0  # torch takes up to some 20 s from a cold network file system
_CLOCKS = ("CLOCK_REALTIME", "CLOCK_MONOTONIC", "CLOCK_MONOTONIC_RAW", "CLOCK_BOOTTIME")


class LayerState(msgspec.Struct, frozen=True):
    """One layer: usable by what is installed; `tried` says what really came out of a trial."""

    name: str
    available: bool
    version: str = ""
    why: str = ""
    tried: str = ""


class TelemetryState(msgspec.Struct, frozen=True):
    """One telemetry source, and why it is missing."""

    name: str
    available: bool
    why: str = ""


class Clocks(msgspec.Struct, frozen=True):
    """Resolutions in ns; `suspended_ns` is how long the host slept since boot (BOOTTIME less
    MONOTONIC).
    """

    resolution_ns: dict[str, int]
    suspended_ns: int


class PluginState(msgspec.Struct, frozen=True):
    """A member that another package adds to a family, and why it cannot be used."""

    family: str
    name: str
    available: bool
    why: str = ""


class Checkup(msgspec.Struct, frozen=True):
    """The answer of `doctor --json` (docs/json.md#doctor); `access` says what of the node this user
    may open, `clashes` what will keep a profiler from recording here, `power_caps` whose caps are
    changed now or were left.
    """

    devices: tuple[environment.Device, ...]
    layers: tuple[LayerState, ...]
    telemetry: tuple[TelemetryState, ...]
    clocks: Clocks
    access: tuple[AccessState, ...] = ()
    host: str = ""
    python: str = ""
    plugins: tuple[PluginState, ...] | msgspec.UnsetType = msgspec.UNSET
    clashes: tuple[Finding, ...] = ()
    power_caps: tuple[LeftCaps, ...] = ()


def examine(python: str = "", *, try_layers: bool = False) -> Checkup:
    """Probe the node with the workload's interpreter. Raises Unavailable when it cannot be
    started.
    """
    interpreter = python or sys.executable
    probe = layers.probe_command(interpreter)
    found = environment.parse(LocalLauncher().capture(probe, PROBE_S))
    states = tuple(
        _layer_state(layer, found, interpreter, try_layers=try_layers) for layer in layers.members()
    )
    telemetry = tuple(
        TelemetryState(name, not why, why)
        for name, why in source_states(os.environ.get("PROFHARNESS_SYSFS", "/sys"))
    )
    return Checkup(
        devices=found.devices,
        layers=states,
        telemetry=telemetry,
        clocks=_clocks(),
        access=access.states(found),
        host=found.host,
        python=interpreter,
        plugins=_plugins() or msgspec.UNSET,
        clashes=_clashes(found),
        power_caps=left_caps(),
    )


def _clashes(found: Environment) -> tuple[Finding, ...]:
    """What will keep the layers that are here from recording."""
    here = [layer for layer in layers.members() if layer.probe(found).available]
    looked = Planned(here, "maybe" if "torch" in found.packages else "no")
    return tuple(clash.finding for clash in clashes(found, looked))


def _plugins() -> tuple[PluginState, ...]:
    """What other packages add, once every family was asked for it."""
    for family in (layers, readers, scans, sources, verdict):
        family.foreign_names()
    refused = {(table.group, table.name): table.why for table in formulas.load().refused}
    return tuple(
        PluginState(plugin.group, plugin.name, not why, why)
        for plugin in families.plugins()
        for why in (plugin.why or refused.get((plugin.group, plugin.name), ""),)
    )


def _layer_state(layer: Layer, found: Environment, python: str, *, try_layers: bool) -> LayerState:
    state = layer.probe(found)
    result = ""
    # what stands beside a workload needs a device at work
    if try_layers and layer.about.scope != "sidecar" and state.available:
        result = _import_failure(found, python) or tried(layer, python)
    return LayerState(
        layer.name,
        state.available,
        state.version,
        _HERE.sub("", state.why.replace("\n", "; ")),
        result,
    )


def _import_failure(found: Environment, python: str) -> str:
    """What a trial would wait for in vain: an import of torch that never ends. It is only tried
    where the node's facts speak for it.
    """
    why = hanging_import(found)
    if not why:
        return ""
    try:
        LocalLauncher().capture(Command((python, "-c", "import torch")), _IMPORT_S)
    except Unavailable:
        return f"failed: {why} (it was given {_IMPORT_S:g} s)"
    return ""


def tried(layer: Layer, python: str) -> str:
    """How the layer does on its tiny program under this interpreter: `works: ...`, `nothing
    recorded: ...` or `failed: ...`, each with what to do.
    """
    with tempfile.TemporaryDirectory(prefix="profharness-doctor-") as folder:
        request = Request(
            command=(python, str(wrappers_dir() / layer.about.trial)),
            profile=(layer.name,),
            capture="all",
            output=str(Path(folder) / "run"),
            telemetry="off",
        )
        try:
            prepared = plan_run(request)
            result = engine.execute(
                prepared,
                ("doctor", "--try", layer.name),
                NullProgress(),
                scrub.findings,
                echo_stdout=True,
            )
            if result.exit_status != 0:
                return (
                    f"failed: the trial program exited {result.exit_status}; run it by hand: "
                    f"{' '.join(request.command)}"
                )
            errors = [
                found for found in result.run.read_manifest().findings if found.severity == "error"
            ]
            if silent := next((found for found in errors if found.id == "nothing-recorded"), None):
                return f"failed: {silent.message}"
            if layer.about.is_tool and errors:
                return f"failed: {errors[0].message}; {errors[0].advice}"
            trace = understand.load([result.run.root], allow_unaligned=True).trace
        except ProfharnessError as error:
            return f"failed: {error.message}; {error.hint}"
    return _judge(trace)


def _judge(trace: Trace) -> str:
    records = len(trace.kernels) + len(trace.ops)
    if records:
        return f"works: {len(trace.kernels)} kernels and {len(trace.ops)} operators recorded"
    return (
        "nothing recorded: the hook ran and the tool saw no work; try --hook exec, "
        "and check that the device is visible"
    )


def _clocks() -> Clocks:
    resolution = {
        name.removeprefix("CLOCK_").lower(): round(time.clock_getres(getattr(time, name)) * 1e9)
        for name in _CLOCKS
    }
    suspended = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.clock_gettime_ns(
        time.CLOCK_MONOTONIC
    )
    # two readings one after the other differ by well under a millisecond when the host never slept
    return Clocks(resolution, suspended if suspended > 1_000_000 else 0)
