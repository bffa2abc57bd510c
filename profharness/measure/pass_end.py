"""What is done once a pass has ended: the tool's own analysis, its files, what there is to say, and
its refusals.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgspec

from profharness import layers
from profharness.launchers import Outcome
from profharness.layers.contract import Where
from profharness.measure import counter_split as splitting
from profharness.measure.plan import Prepared, pass_record, points_of
from profharness.measure.recorder import Recorder
from profharness.measure.schedule import PassPlan
from profharness.rundir.manifest import Artifact
from profharness.scans.contract import Point, Scan, key_of
from profharness.secrets import scrub as scrubbing
from profharness.supervise import diagnosis as failures
from profharness.supervise.tool import ToolPass


def conclude(
    prepared: Prepared, tool: ToolPass, outcome: Outcome, said: str, recorder: Recorder
) -> bool:
    """Record the files that are there now, and the findings on them. Whether the tool refused the
    pass's counters.

    What a refused pass left is kept and not read: it holds none of what the pass was for.
    """
    found = tool.follow_up(prepared.launcher, outcome)
    collected = collect(tool.plan, tool.where, recorder)
    refused = tool.refused(said, collected)
    recorder.add_artifacts(
        tuple(msgspec.structs.replace(artifact, aside=True) for artifact in collected)
        if refused
        else collected
    )
    for one in (
        *tool.findings(outcome, said, recorder.manifest.artifacts),
        *found,
        *scrubbing.findings(recorder.run.root, collected),
    ):
        recorder.add_finding(one)
    return refused


def collect(plan: PassPlan, where: Where, recorder: Recorder) -> tuple[Artifact, ...]:
    """The files of the pass's layers that are not in the manifest yet."""
    known = frozenset(artifact.path for artifact in recorder.manifest.artifacts)
    return tuple(
        artifact for layer in plan.layers for artifact in layers.collect(layer, where, known)
    )


def spare_executions(prepared: Prepared) -> int | None:
    """How many more executions of a command were allowed than the plan has; None where any number
    was, and for scans.
    """
    request = prepared.request
    if prepared.scan is not None or request.yes:
        return None
    # the bare pass that --bare asks for is allowed by that
    counted = sum(1 for plan in prepared.plan.passes if plan.layers or not request.bare)
    return max((request.passes or 1) - counted, 0)


def record_split(
    prepared: Prepared, plan: PassPlan, parts: Sequence[PassPlan], said: str, recorder: Recorder
) -> None:
    """Put the halves behind the refused pass in the manifest, with their points where it is a scan,
    and say so.
    """
    recorder.add_finding(splitting.told(plan, parts, failures.refused_line(said)))
    manifest = recorder.manifest
    whole = manifest.pass_named(plan.name)
    if whole is None:
        return
    state = "done" if parts else "failed"
    whole = msgspec.structs.replace(whole, state=state, split=tuple(part.name for part in parts))
    fresh = [pass_record(prepared, part, "planned") for part in parts]
    at = manifest.passes.index(
        next(record for record in manifest.passes if record.name == plan.name)
    )
    recorder.update(passes=(*manifest.passes[:at], whole, *fresh, *manifest.passes[at + 1 :]))
    if parts and manifest.scan is not None and prepared.scan is not None:
        planned = {name: keys for name, keys in manifest.scan.planned.items() if name != plan.name}
        planned |= {part.name: planned_keys(prepared.scan, part) for part in parts}
        recorder.update(scan=msgspec.structs.replace(manifest.scan, planned=planned))


def planned_keys(scan: Scan, plan: PassPlan) -> tuple[str, ...]:
    """The keys of the points that a pass is to measure."""
    return tuple(point.key for backend in plan.targets for point in points_of(scan, plan, backend))


def missing(recorder: Recorder, plan: PassPlan, points: Sequence[Point]) -> tuple[Point, ...]:
    """Those that the pass has no record of."""
    there = {key_of(record) for record in recorder.manifest.points if record.pass_name == plan.name}
    return tuple(point for point in points if point.key not in there)


def nothing_to_do() -> Outcome:
    """The end of a pass that lacked no point."""
    now = boot_ns()
    return Outcome(0, 0, now, now)


def boot_ns() -> int:
    """Now, on CLOCK_BOOTTIME in ns."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)
