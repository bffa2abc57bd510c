"""Several ranks in one run directory: how the others join it, and how rank 0 gathers their outcomes (DESIGN 3).

Each rank starts its own copy of the command and writes only under its own names; rank 0 owns the manifest, the
lowest local rank of a node owns that node's sampler.
"""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from profharness.errors import InputError, Unavailable
from profharness.findings import finding
from profharness.launchers import Outcome
from profharness.manifest import RankOutcome
from profharness.recorder import Recorder
from profharness.rundir import RunDir, write_atomic
from profharness.sampling import Sampler
from profharness.schedule import PassPlan

if TYPE_CHECKING:
    from profharness.engine import Prepared, Result

JOIN_S = 120.0
GATHER_S = 60.0


def follow(prepared: Prepared, *, echo_stdout: bool) -> Result:
    """A rank other than 0: wait for the run directory, run every pass, leave the outcome where rank 0 looks."""
    from profharness.engine import Result, command_pass

    run = _wait_for_run(prepared)
    status = 0
    sampler = Sampler(run, prepared.request, prepared.host, None)
    with sampler if prepared.rank.leads_node else nullcontext():
        for plan in prepared.plan.passes:
            tool, outcome, said = command_pass(prepared, plan, run, sampler, echo_stdout=echo_stdout)
            outcome = replace(outcome, exit_status=tool.status(outcome, said))
            _leave(run, prepared, plan, outcome)
            status = status or outcome.exit_status
            if outcome.interrupted:
                break
    return Result(run, status, leads=False)


def gather(prepared: Prepared, plan: PassPlan, own: Outcome, recorder: Recorder) -> None:
    """Rank 0, after its own command ended: wait for the others (a minute at most) and record all outcomes."""
    _leave(recorder.run, prepared, plan, own)
    folder = recorder.run.root / "control" / "ranks"
    deadline = time.monotonic() + GATHER_S
    wanted = [folder / f"{plan.name}-{rank}.json" for rank in range(prepared.rank.world)]
    while time.monotonic() < deadline and not all(path.exists() for path in wanted):
        time.sleep(0.02)
    present = [path for path in wanted if path.exists()]
    outcomes = tuple(msgspec.json.decode(path.read_bytes(), type=RankOutcome) for path in present)
    recorder.update(rank_outcomes=(*recorder.manifest.rank_outcomes, *outcomes))
    missing = [rank for rank, path in enumerate(wanted) if not path.exists()]
    if missing:
        recorder.add_finding(finding("profiler-failed", f"ranks {missing} of {prepared.rank.world} left no outcome within {GATHER_S:g} s",
                                     missing=len(missing)))


def _leave(run: RunDir, prepared: Prepared, plan: PassPlan, outcome: Outcome) -> None:
    record = RankOutcome(rank=prepared.rank.rank, host=prepared.host, pid=outcome.pid, exit_status=outcome.exit_status,
                         pass_name=plan.name, start_boot_ns=outcome.start_boot_ns, end_boot_ns=outcome.end_boot_ns)
    write_atomic(run.root / "control" / "ranks" / f"{plan.name}-{prepared.rank.rank}.json", msgspec.json.encode(record))


def _wait_for_run(prepared: Prepared) -> RunDir:
    """The directory that rank 0 of the same job makes. Raises Unavailable when it does not appear in time."""
    deadline = time.monotonic() + JOIN_S
    while time.monotonic() < deadline:
        try:
            run = RunDir.open(prepared.root)
            if run.read_manifest().job == prepared.rank.job:
                return run
        except InputError:
            pass  # not there yet
        time.sleep(0.02)
    raise Unavailable(f"rank {prepared.rank.rank}: rank 0 made no run directory {prepared.root} within {JOIN_S:g} s",
                      "all ranks must see the same folder: name one on a shared file system with --output")
