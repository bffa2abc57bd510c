"""What an attachment will be: the process, the tool and its command line, and all that speaks
against it before anything starts.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

from profharness import layers
from profharness.errors import ProfharnessError, Unavailable, UsageError
from profharness.launchers.local import LocalLauncher
from profharness.layers import attaching
from profharness.layers.contract import Attachment, Layer
from profharness.measure import ranks, schedule
from profharness.measure.attached.target import (
    Target,
    ourselves,
    require_attachable,
    require_reachable,
)
from profharness.measure.plan import RunPlan
from profharness.measure.planning import layer_names, own_passes, probe_node, root_of
from profharness.measure.schedule import Schedule
from profharness.options.request import Request
from profharness.supervise.pass_plan import BARE, PassPlan

TELEMETRY = "telemetry"
# libraries of profilers by how their names begin: what holds one is recorded already
_PROFILERS = (
    ("librocprofiler-sdk-tool", "rocprofv3"),
    ("librocprof-sys", "rocprof-sys"),
    ("librocprofiler-compute", "rocprof-compute"),
    ("libomnitrace", "omnitrace"),
    ("libtracer_tool", "rocprof"),
    ("libroctracer_tool", "rocprof"),
    ("librocprofiler_tool", "rocprofv2"),
)
_SLACK_S = 2.0  # between the clocks of files and of processes


@dataclass(frozen=True)
class AttachPlan:
    """Decided, and nothing started. Without `attachment` only telemetry is recorded. `notes` are
    for the user; `objection` is what a dry run found to speak against it.
    """

    run_plan: RunPlan
    target: Target
    for_ns: int
    attachment: Attachment | None
    notes: tuple[str, ...] = ()
    objection: ProfharnessError | None = None

    def at(self, run_plan: RunPlan) -> AttachPlan:
        """The same attachment, recorded into the directory of `run_plan`."""
        if run_plan.root == self.run_plan.root or self.attachment is None:
            return replace(self, run_plan=run_plan)
        passed = run_plan.schedule.passes[0]
        where = run_plan.where(passed, is_worker=False)
        attachment = passed.layers[0].attach(self.target.pid, self.for_ns, where)
        return replace(self, run_plan=run_plan, attachment=attachment)

    @property
    def pass_plan(self) -> PassPlan:
        """The only pass."""
        return self.run_plan.schedule.passes[0]


def attaching_names() -> tuple[str, ...]:
    """What --profile may name."""
    return (*(about.name for about in layers.descriptions() if about.attaches), TELEMETRY)


def plan_attach(request: Request, target: Target, for_ns: int, *, dry: bool = False) -> AttachPlan:
    """Check and decide; `request` has the process's own words as its command.

    Raises UsageError, and Unavailable where the tool or the kernel cannot do it; a dry run plans
    all the same and keeps the reason.
    """
    if target.pid == os.getpid():
        raise UsageError("this is profharness itself", "name another process")
    chosen = layers.named(layer_names(request))
    launcher = LocalLauncher(None)
    environment = probe_node(launcher, sys.executable, dry=dry)
    rank = ranks.detect({})  # one process beside the job, whatever job this shell is in
    own = own_passes(request, chosen, environment)
    passes = schedule.plan_command(
        chosen, bare=False, allowed=None, agreed=True, own=own, dry=dry
    ).passes
    run_plan = RunPlan(
        request,
        root_of(request, rank),
        rank,
        environment,
        launcher,
        sys.executable,
        Schedule((_one_of(passes),)),
        None,
    )
    if not chosen:
        return AttachPlan(run_plan, target, for_ns, None)
    where = run_plan.where(run_plan.schedule.passes[0], is_worker=False)
    attachment = chosen[0].attach(target.pid, for_ns, where)
    objection = _objection(chosen[0], run_plan, target, attachment)
    if objection is not None and not dry:
        raise objection
    notes = (*attachment.notes, *_notes(chosen[0], target, attachment))
    return AttachPlan(run_plan, target, for_ns, attachment, notes, objection)


def _one_of(passes: tuple[PassPlan, ...]) -> PassPlan:
    """The counters' pass where counters were asked for. Raises UsageError for several of them."""
    counted = [one for one in passes if one.counters]
    if len(counted) > 1:
        groups = "; ".join(" ".join(one.counters) for one in counted)
        raise UsageError(
            f"these counters need {len(counted)} recordings, and attach makes one ({groups})",
            "ask for one group; the tool takes no other one of the same process afterwards",
        )
    traced = [one for one in passes if one.name != BARE]
    return (counted or traced or list(passes))[0]


def _objection(
    layer: Layer, run_plan: RunPlan, target: Target, attachment: Attachment
) -> ProfharnessError | None:
    """The first thing that speaks against it."""
    try:
        _require_program(layer, run_plan, attachment)
        require_reachable(target, ourselves())
        require_attachable(target)
        _require_alone(target, attachment)
        if attachment.memory is not None:
            _require_fresh(layer, target, attachment.memory)
    except Unavailable as error:
        return error
    return None


def _require_program(layer: Layer, run_plan: RunPlan, attachment: Attachment) -> None:
    program = attachment.command.argv[0]
    if shutil.which(program) is not None:
        return
    state = layer.probe(run_plan.environment)
    reason = "" if state.available else f" ({state.why.partition(chr(10))[0]})"
    raise Unavailable(
        f"{program} is not on this node{reason}",
        f"attaching came with {layer.about.attaches}\n{attaching.OTHERWISE}",
    )


def _require_alone(target: Target, attachment: Attachment) -> None:
    """Raises Unavailable where another profiler is in the process, which might abort with two."""
    for library, name in _PROFILERS:
        if not target.maps(library):
            continue
        # of the tool's own library only its memory tells who brought it
        was_attached = attachment.memory is None or attachment.memory.exists()
        if library == attachment.library and was_attached:
            continue
        raise Unavailable(
            f"{target.name} is recorded by {name} already, or was before ({library} is in it): a "
            "process takes one profiler of the device, and might abort with a second",
            f"read what {name} leaves, or start the program anew\n{attaching.OTHERWISE}",
        )


def _require_fresh(layer: Layer, target: Target, memory: Path) -> None:
    """What the tool remembers of an earlier process of this number, or of another user's call, is
    taken for this one's. Raises Unavailable.
    """
    try:
        status = memory.stat()
    except OSError:
        return
    if status.st_uid not in (os.geteuid(), 0):
        raise Unavailable(
            f"{layer.name} was attached to {target.name} by another user (number {status.st_uid}), "
            f"and keeps that in {memory}",
            "attach as that user, or start the program anew",
        )
    now = time.clock_gettime(time.CLOCK_BOOTTIME)
    written = now - (time.time() - status.st_mtime)  # on the clock of the process's start
    if written < target.began_boot_ns / 1e9 - _SLACK_S:
        raise Unavailable(
            f"{memory} is left from an earlier process with the number {target.pid}: "
            f"{layer.name} would hold this one to the options of that one",
            f"remove it: rm {memory}",
        )


def _notes(layer: Layer, target: Target, attachment: Attachment) -> tuple[str, ...]:
    """What a user should know beforehand."""
    found = []
    if attachment.memory is not None and attachment.memory.exists():
        found.append(
            f"{layer.name} was attached to {target.name} before: it refuses other traces and "
            "counters than at that time"
        )
    if attachment.memory is None and target.maps(attachment.library):
        found.append(
            f"{layer.name} was attached to {target.name} before, and keeps the settings of that "
            "time: its files may go where they went then"
        )
    if target.variable and not target.listens:
        found.append(
            f"{target.name} has no thread rocp-bg-attach: it has not loaded the ROCm runtime yet, "
            "and the tool may find nothing to attach to"
        )
    if attachment.fails_with_torch and target.maps("libtorch"):
        found.append(
            f"{target.name} runs torch: up to rocprofiler-sdk 1.3.5 attaching to such a process "
            "may fail, because torch brings a profiler of its own"
        )
    return tuple(found)
