"""Several ranks in one run directory: the others leave their outcomes, and rank 0 gathers them
(docs/run-directory.md#ranks). How they find it: `meeting`.

Each rank runs the same passes (`passes`), starts its own copy of the command and writes only under
its own names. Rank 0 owns the manifest; the lowest local rank of a node owns that node's sampler.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from profharness.findings import Finding, finding
from profharness.launchers.command import Command
from profharness.layers import around
from profharness.measure.meeting.board import Board
from profharness.measure.meeting.clock_link import ClockLink
from profharness.measure.meeting.waiting import Patience, end_limit_s
from profharness.measure.passes import EndedPass
from profharness.measure.plan import RunPlan
from profharness.measure.recorder import Recorder
from profharness.rundir.lost import LostFile, lost_finding
from profharness.rundir.manifest import NodeRecord, RankOutcome
from profharness.rundir.paths import RunDir, write_atomic
from profharness.supervise.pass_plan import PassPlan

VERDICT_S = 600.0
STOPPED_S = 10.0
"""How long rank 0 waits for outcomes where a signal has ended it: a batch system kills it soon
(Slurm 30 s later, by default), and a rank whose node is gone leaves none.
"""
_NUMBERS = re.compile(r"\d+")


@dataclass(frozen=True)
class RankRecords:
    """The records of a rank other than 0: its outcome lies where rank 0 looks for it."""

    run_plan: RunPlan
    run: RunDir
    link: ClockLink

    def begin(self, plan: PassPlan) -> None:
        """Rank 0 says that the pass is running."""

    def end(self, ended: EndedPass) -> bool:
        """Leave the outcome. Whether a counter pass is split is decided by rank 0, since all ranks
        must run the same passes.
        """
        self.link.read("after")  # rank 0 answers for as long as it waits for outcomes
        tool = ended.tool
        artifacts = tool.collect()
        findings = tool.of_tool(ended.execution.last, ended.stderr_text, artifacts)
        refused = tool.refused(ended.stderr_text, artifacts)
        _write_outcome(self.run_plan, ended, refused=refused, findings=findings)
        return bool(ended.plan.counters) and _is_split(self.run_plan, ended.plan)

    def split(self, ended: EndedPass, halves: Sequence[PassPlan]) -> None:
        """Rank 0 records it."""

    def lose(self, *lost: LostFile) -> None:
        """One sentence: the manifest is rank 0's."""
        told = lost_finding(lost, self.run.root)
        if told is not None:
            sys.stderr.write(f"profharness: rank {self.run_plan.rank.rank}: {told.message}\n")


def gather(run_plan: RunPlan, ended: EndedPass, recorder: Recorder) -> bool:
    """Rank 0, after its own command has ended: wait for the others, record all outcomes and their
    findings.

    Each next outcome may take a minute and the time to write as many bytes as rank 0 left, and
    where rank 0 ran without the tool, what the tools around the others need, which may start the
    command many times; or as long as the user says.

    After a signal the wait is short. Returns whether the tool refused the pass's counters on any
    rank, and leaves that for the other ranks to read. False where there is one process only.
    """
    if run_plan.rank.world == 1:
        return False
    plan, folder = ended.plan, _folder(recorder.run)
    own = ended.tool.collect()
    _write_outcome(run_plan, ended, refused=ended.tool.refused(ended.stderr_text, own))
    limit_s = end_limit_s(
        run_plan.request.rank_limit,
        sum(artifact.size_bytes or 0 for artifact in own),
        0.0 if run_plan.is_traced else _behind_s(run_plan, ended),
    )
    if ended.execution.signals:
        limit_s = min(limit_s, STOPPED_S)
    expected = {f"{plan.name}-{rank}.json": rank for rank in range(run_plan.rank.world)}
    missing = _awaited(folder, expected, limit_s)
    outcomes = tuple(
        msgspec.json.decode((folder / name).read_bytes(), type=RankOutcome)
        for name, rank in expected.items()
        if rank not in missing
    )
    recorder.update(
        rank_outcomes=(*recorder.manifest.rank_outcomes, *outcomes),
        nodes=tuple(with_cpus_of_ranks(node, outcomes) for node in recorder.manifest.nodes),
    )
    for rank_finding in rank_findings(outcomes):
        recorder.add_finding(rank_finding)
    if missing:
        recorder.add_finding(
            finding(
                "rank-lost",
                f"{_ranks(missing)} of {run_plan.rank.world} left no outcome within "
                f"{limit_s:.0f} s (--rank-limit sets it)",
                missing=len(missing),
            )
        )
    refused = any(outcome.refused for outcome in outcomes) and not ended.execution.signals
    if plan.counters:
        write_atomic(_verdict(recorder.run, plan), msgspec.json.encode(refused))
        Board.of(run_plan).say_split(plan.name, split=refused)
    return refused


def _awaited(folder: Path, expected: Mapping[str, int], limit_s: float) -> list[int]:
    """Wait for these files of ranks; the ranks that left none in time. A look is one call, however
    many ranks there are.
    """
    missing = sorted(expected.values())
    patience = Patience(
        limit_s, lambda: f"rank 0 waits for {_ranks(missing)} of {len(expected)} to end"
    )
    while True:
        there = expected.keys() & _names(folder)
        left = sorted(rank for name, rank in expected.items() if name not in there)
        if len(left) < len(missing):
            patience.progress()
        missing = left
        if not missing or not patience.again():
            return missing


def _names(folder: Path) -> set[str]:
    """What lies in the folder; nothing where a disk went away."""
    try:
        return set(os.listdir(folder))  # noqa: PTH208  names are enough
    except OSError:
        return set()


def apart(run_plan: RunPlan) -> tuple[Finding, ...]:
    """That this run is of one of several processes, where it is."""
    why = run_plan.rank.apart
    return (finding("ranks-apart", why),) if why else ()


def with_cpus_of_ranks(node: NodeRecord, outcomes: Sequence[RankOutcome]) -> NodeRecord:
    """The node with the CPUs of all its ranks: a launcher may bind each to its own, and what they
    use is told of them together.
    """
    bound = {
        cpu for outcome in outcomes if outcome.host == node.host for cpu in outcome.cpus_allowed
    }
    allowed = tuple(sorted({*node.cpus_allowed, *bound}))
    return msgspec.structs.replace(node, cpus_allowed=allowed)


def _behind_s(run_plan: RunPlan, ended: EndedPass) -> float:
    """How long a tool around another rank may go on when the command has ended here: it may start
    the command again and again, and write for long after that.
    """
    plan, own = ended.plan, ended.execution.outcomes
    where = run_plan.where(plan, is_worker=False)
    starts = around.extras(plan.layers, Command(run_plan.request.command), where).starts
    own_s = sum(one.end_boot_ns - one.start_boot_ns for one in own) / 1e9
    return run_plan.request.exit_limit + (max(starts) - 1) * own_s


def rank_findings(outcomes: Sequence[RankOutcome]) -> tuple[Finding, ...]:
    """The findings on the tools around the other ranks; the same one of several ranks once,
    whatever numbers it names.
    """
    groups: dict[tuple[str, str], list[tuple[int, Finding]]] = {}
    for outcome in outcomes:
        for rank_finding in outcome.findings:
            text = _NUMBERS.sub("#", rank_finding.message)
            groups.setdefault((rank_finding.id, text), []).append((outcome.rank, rank_finding))
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


def _folder(run: RunDir) -> Path:
    return run.root / "control" / "ranks"


def _verdict(run: RunDir, plan: PassPlan) -> Path:
    return _folder(run) / f"{plan.name}-verdict.json"


def _is_split(run_plan: RunPlan, plan: PassPlan) -> bool:
    """What rank 0 says of a counter pass; it may take as long as its own execution. Without a word,
    the plan stands.

    The leader of a node looks for it in the run directory, and tells the others.
    """
    rank, board = run_plan.rank, Board.of(run_plan)
    path = _verdict(RunDir(run_plan.root), plan)
    about = f"rank {rank.rank} of {rank.world} waits for what rank 0 says of the pass {plan.name}"
    patience = Patience(
        max(VERDICT_S, run_plan.request.rank_limit or 0.0),
        (lambda: about) if rank.leads_node else None,
    )
    while True:
        word = None if rank.leads_node else board.read()
        if word is not None and not word.is_dead and word.root == str(run_plan.root):
            if plan.name in word.splits:
                return word.splits[plan.name]
        elif path.exists():
            split = msgspec.json.decode(path.read_bytes(), type=bool)
            if rank.leads_node:
                board.say_split(plan.name, split=split)
            return split
        if not patience.again():
            return False


def _write_outcome(
    run_plan: RunPlan, ended: EndedPass, *, refused: bool, findings: tuple[Finding, ...] = ()
) -> None:
    """Write this rank's outcome of a pass, with what there is to say of the tool around it."""
    outcome, plan, rank = ended.execution.last, ended.plan, run_plan.rank.rank
    record = RankOutcome(
        rank=rank,
        host=run_plan.host,
        pid=outcome.pid,
        exit_status=ended.workload_status,
        pass_name=plan.name,
        start_boot_ns=outcome.start_boot_ns,
        end_boot_ns=outcome.end_boot_ns,
        findings=findings,
        cpus_allowed=tuple(sorted(os.sched_getaffinity(0))),
        refused=refused,
    )
    path = _folder(RunDir(run_plan.root)) / f"{plan.name}-{rank}.json"
    write_atomic(path, msgspec.json.encode(record))
