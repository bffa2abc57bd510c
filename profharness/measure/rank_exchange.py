"""Several ranks in one run directory: how the others join it, and how rank 0 gathers their outcomes
(docs/run-directory.md#ranks).

Each rank starts its own copy of the command and writes only under its own names; rank 0 owns the
manifest, the lowest local rank of a node owns that node's sampler.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from profharness.errors import InputError, Unavailable
from profharness.findings import Finding, finding
from profharness.launchers import Outcome
from profharness.measure.counter_split import Passes
from profharness.measure.recorder import Recorder
from profharness.measure.sampler import Sampler
from profharness.measure.schedule import PassPlan
from profharness.rundir.manifest import RankOutcome
from profharness.rundir.paths import RunDir, write_atomic
from profharness.supervise.tool import ToolPass

if TYPE_CHECKING:
    from profharness.measure.engine import Result
    from profharness.measure.plan import Prepared

JOIN_S = 120.0
GATHER_S = 60.0
VERDICT_S = 600.0
_NUMBERS = re.compile(r"\d+")


def follow(prepared: Prepared, *, echo_stdout: bool) -> Result:
    """A rank other than 0: wait for the run directory, run every pass, leave the outcome where rank
    0 looks.

    Whether a counter pass is split is rank 0's to say, since all ranks must run the same passes.
    """
    from profharness.measure import command_pass as command_run
    from profharness.measure import pass_end
    from profharness.measure.engine import Result
    from profharness.supervise import diagnosis as failures

    run = _wait_for_run(prepared)
    statuses: list[int] = []
    sampler = Sampler(run, prepared.request, prepared.host, None)
    left = Passes(prepared.plan.passes, pass_end.spare_executions(prepared))
    with sampler if prepared.rank.leads_node else nullcontext():
        while (plan := left.take()) is not None:
            tool, outcome, said = command_run.execute(
                prepared, plan, run, sampler, echo_stdout=echo_stdout
            )
            collected = tuple(
                artifact
                for layer in plan.layers
                for artifact in layer.collect(tool.where, frozenset())
            )
            refused = tool.refused(said, collected)
            status = tool.status(outcome, said)
            _leave(
                run,
                prepared,
                plan,
                replace(outcome, exit_status=status),
                Told(tool.of_tool(outcome, said, collected), refused),
            )
            if plan.counters and _is_split(run, plan):
                left.split(plan)
                continue
            statuses.append(status)
            if outcome.interrupted:
                break
    return Result(
        run,
        next((status for status in statuses if status), 0) if statuses else failures.REFUSED,
        leads=False,
    )


@dataclass(frozen=True)
class Told:
    """What a rank other than 0 has to say of the tool around it."""

    findings: tuple[Finding, ...] = ()
    refused: bool = False


def gather(prepared: Prepared, tool: ToolPass, own: Outcome, said: str, recorder: Recorder) -> bool:
    """Rank 0, after its own command ended: wait for the others (a minute at most), record all
    outcomes and their findings.

    Whether the pass's counters were refused on any rank, which the others are told.
    """
    plan = tool.plan
    collected = tuple(
        artifact for layer in plan.layers for artifact in layer.collect(tool.where, frozenset())
    )
    _leave(recorder.run, prepared, plan, own, Told(refused=tool.refused(said, collected)))
    folder = recorder.run.root / "control" / "ranks"
    deadline = time.monotonic() + GATHER_S
    wanted = [folder / f"{plan.name}-{rank}.json" for rank in range(prepared.rank.world)]
    while time.monotonic() < deadline and not all(path.exists() for path in wanted):
        time.sleep(0.02)
    present = [path for path in wanted if path.exists()]
    outcomes = tuple(msgspec.json.decode(path.read_bytes(), type=RankOutcome) for path in present)
    recorder.update(rank_outcomes=(*recorder.manifest.rank_outcomes, *outcomes))
    for found in of_ranks(outcomes):
        recorder.add_finding(found)
    missing = [rank for rank, path in enumerate(wanted) if not path.exists()]
    if missing:
        recorder.add_finding(
            finding(
                "profiler-failed",
                f"ranks {missing} of {prepared.rank.world} left no outcome within {GATHER_S:g} s",
                missing=len(missing),
            )
        )
    refused = any(outcome.refused for outcome in outcomes) and not own.interrupted
    if plan.counters:
        write_atomic(_verdict(recorder.run, plan), msgspec.json.encode(refused))
    return refused


def of_ranks(outcomes: Sequence[RankOutcome]) -> tuple[Finding, ...]:
    """The findings on the tools around the other ranks; the same one of several ranks once,
    whatever numbers it names.
    """
    groups: dict[tuple[str, str], list[tuple[int, Finding]]] = {}
    for outcome in outcomes:
        for found in outcome.findings:
            groups.setdefault((found.id, _NUMBERS.sub("#", found.message)), []).append(
                (outcome.rank, found)
            )
    return tuple(
        msgspec.structs.replace(
            group[0][1], message=f"{_ranks([rank for rank, _ in group])}: {group[0][1].message}"
        )
        for group in groups.values()
    )


def _ranks(ranks: Sequence[int]) -> str:
    shown = ", ".join(map(str, ranks[:8])) + (
        f" and {len(ranks) - 8} more" if len(ranks) > 8 else ""
    )
    return f"rank{'s' * (len(ranks) != 1)} {shown}"


def _verdict(run: RunDir, plan: PassPlan) -> Path:
    return run.root / "control" / "ranks" / f"{plan.name}-verdict.json"


def _is_split(run: RunDir, plan: PassPlan) -> bool:
    """What rank 0 says of a counter pass; it may take as long as its own execution. Without a word,
    the plan stands.
    """
    deadline = time.monotonic() + VERDICT_S
    path = _verdict(run, plan)
    while time.monotonic() < deadline:
        if path.exists():
            return msgspec.json.decode(path.read_bytes(), type=bool)
        time.sleep(0.02)
    return False


def _leave(run: RunDir, prepared: Prepared, plan: PassPlan, outcome: Outcome, told: Told) -> None:
    record = RankOutcome(
        rank=prepared.rank.rank,
        host=prepared.host,
        pid=outcome.pid,
        exit_status=outcome.exit_status,
        pass_name=plan.name,
        start_boot_ns=outcome.start_boot_ns,
        end_boot_ns=outcome.end_boot_ns,
        findings=told.findings,
        refused=told.refused,
    )
    write_atomic(
        run.root / "control" / "ranks" / f"{plan.name}-{prepared.rank.rank}.json",
        msgspec.json.encode(record),
    )


def _wait_for_run(prepared: Prepared) -> RunDir:
    """The directory that rank 0 of the same job makes. Raises Unavailable when it does not appear
    in time.
    """
    deadline = time.monotonic() + JOIN_S
    while time.monotonic() < deadline:
        try:
            run = RunDir.open(prepared.root)
            if run.read_manifest().job == prepared.rank.job:
                return run
        except InputError:
            pass  # not there yet
        time.sleep(0.02)
    raise Unavailable(
        f"rank {prepared.rank.rank}: rank 0 made no run directory {prepared.root} within "
        f"{JOIN_S:g} s",
        "all ranks must see the same folder: name one on a shared file system with --output",
    )
