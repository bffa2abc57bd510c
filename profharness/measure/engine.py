"""The measuring half in one place: carry a plan out, pass by pass, and record everything. Read this
first.

`planning` probes the node and decides the passes, `passes` runs each of them. Processes are started
only through launchers. No figures are computed here: `understand` does that, from the run directory
that is left behind.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import msgspec

from profharness import __version__, layers
from profharness.errors import InputError
from profharness.layers.clashes import Clash, upheld
from profharness.measure import rank_exchange, resume
from profharness.measure.caps.session import PowerCaps
from profharness.measure.command_pass import CommandPass, command_status
from profharness.measure.counter_split import PassQueue
from profharness.measure.executions.scan_pass import ExecutionsPass
from profharness.measure.executions.settings_pass import SettingsPass
from profharness.measure.meeting.board import Board
from profharness.measure.meeting.clock_link import ClockLink, answering
from profharness.measure.packing.profiles import pack_profiles
from profharness.measure.pass_records import FindSecrets, ManifestRecords, pass_record
from profharness.measure.passes import Pass, run_passes
from profharness.measure.plan import RunPlan, is_served, planned_keys
from profharness.measure.planning import layer_names
from profharness.measure.progress import NullProgress, Progress
from profharness.measure.rank_exchange import RankRecords
from profharness.measure.recorder import Recorder, without_secrets
from profharness.measure.resume import Again
from profharness.measure.sampler import Sampler
from profharness.measure.scan_pass import ScanPass, Watch, scan_status
from profharness.measure.served_pass import ServedPass
from profharness.rundir import harness_process
from profharness.rundir.claims import seal
from profharness.rundir.clock_files import read_clock_files
from profharness.rundir.manifest import LayerOutcome, Manifest, ScanRecord
from profharness.rundir.paths import RunDir
from profharness.rundir.provenance import git_state
from profharness.scans.command import CommandScan
from profharness.scans.settings_scan import SettingsScan
from profharness.supervise.hook_reports import clean_hellos, read_hellos, with_ranks
from profharness.supervise.pass_plan import PassPlan


@dataclass(frozen=True)
class Result:
    """Where the run lies and how it ended. `exit_status` is the command's own, or 0 or 1 for a
    scan.

    `unwritten` says why the manifest on disk is older than the run; empty where it is not.
    """

    run: RunDir
    exit_status: int
    leads: bool = True
    unwritten: str = ""


def execute(
    run_plan: RunPlan,
    argv: tuple[str, ...],
    progress: Progress,
    find_secrets: FindSecrets,
    *,
    echo_stdout: bool = False,
    again: Again | None = None,
) -> Result:
    """Carry the plan out, or (`again`) what an unfinished run lacks of it. Every pass's files go
    through `find_secrets`.

    The run directory, which this process holds (`claims`), is complete when this returns, also
    after a failure or a signal.
    """
    if not run_plan.rank.leads:
        return _follow(run_plan, echo_stdout=echo_stdout)
    recorder = (
        resume.reopen(run_plan, again)
        if again is not None
        else Recorder(
            RunDir(run_plan.root), new_manifest(run_plan, argv), shared=run_plan.request.share
        )
    )
    run, request = recorder.run, run_plan.request
    if run_plan.rank.world > 1:
        Board.of(run_plan).say(root=str(run.root))
    try:
        with (
            PowerCaps(run_plan.caps, run.root, run_plan.host, recorder.add_finding) as caps,
            Sampler(run, request, run_plan.host, recorder, caps.file) as sampler,
            answering(run_plan, run),
        ):
            ended = run_passes(
                _queue(run_plan, recorder.manifest),
                _pass_of(
                    run_plan, Watch(recorder, sampler, progress, caps), echo_stdout=echo_stdout
                ),
                ManifestRecords(run_plan, recorder, find_secrets),
                progress,
                request.exit_limit,
            )
    except BaseException as error:  # the manifest says how the run ended, whatever ended it
        recorder.set_ended(error)
        raise
    status = (
        command_status(ended)
        if run_plan.scan is None
        else scan_status(ended, recorder.manifest.points)
    )
    _finish(recorder, status, run_plan.clashes)
    return Result(run, status, unwritten=recorder.unwritten)


def _follow(run_plan: RunPlan, *, echo_stdout: bool) -> Result:
    """A rank other than 0, which joined the run directory: run every pass, leave the outcomes where
    rank 0 looks.
    """
    run = RunDir(run_plan.root)
    sampler = Sampler(run, run_plan.request, run_plan.host, None)
    link = ClockLink(run_plan, run)
    with sampler if _samples(run_plan, run) else nullcontext():
        link.read("before")
        ended = run_passes(
            _queue(run_plan),
            partial(CommandPass, run_plan, sampler, echo_stdout),
            RankRecords(run_plan, run, link),
            NullProgress(),
            run_plan.request.exit_limit,
        )
    return Result(run, command_status(ended), leads=False)


def _samples(run_plan: RunPlan, run: RunDir) -> bool:
    """Whether a rank other than 0 owns its node's sampler: the first rank of each node does. Where
    no variable counts the ranks of a node, each takes itself for the first. On the node of rank 0
    its own is then the only one, since two samplers would write the same files.
    """
    if not run_plan.rank.leads_node:
        return False
    try:
        nodes = run.read_manifest().nodes
    except InputError:
        return True
    return not nodes or nodes[0].host != run_plan.host


def _queue(run_plan: RunPlan, manifest: Manifest | None = None) -> PassQueue:
    """The passes that are not done by the manifest of a run that is taken up again."""
    records = () if manifest is None else manifest.passes
    done = {record.name for record in records if record.state == "done"}
    left = [plan for plan in run_plan.schedule.passes if plan.name not in done]
    return PassQueue(left, run_plan.spare_executions)


def _pass_of(run_plan: RunPlan, watch: Watch, *, echo_stdout: bool) -> Callable[[PassPlan], Pass]:
    """What makes a pass of this run from its plan."""
    scan = run_plan.scan
    if scan is None:
        return partial(CommandPass, run_plan, watch.sampler, echo_stdout)
    if isinstance(scan, CommandScan):
        return partial(ExecutionsPass, run_plan, scan, watch)
    if isinstance(scan, SettingsScan):
        return partial(SettingsPass, run_plan, scan, watch)
    return partial(ServedPass if is_served(scan) else ScanPass, run_plan, scan, watch)


def new_manifest(run_plan: RunPlan, argv: tuple[str, ...]) -> Manifest:
    """The record of a run that is about to start."""
    request = run_plan.request
    chosen = layers.named(layer_names(request))
    settings: dict[str, object] = msgspec.to_builtins(request)
    manifest = Manifest(
        id=run_plan.root.name,
        created=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        profharness=__version__,
        kind="command" if run_plan.scan is None else "scan",
        argv=argv,
        cwd=str(Path.cwd()),
        command=request.command,
        scan=None
        if run_plan.scan is None
        else ScanRecord(
            name=run_plan.scan.name,
            item=run_plan.scan.item,
            settings=settings,
            planned={
                plan.name: planned_keys(run_plan.scan, plan) for plan in run_plan.schedule.passes
            },
        ),
        harness=harness_process.identify(),
        nodes=(run_plan.environment.node(dict(os.environ)),),
        git=git_state(),
        capture=request.capture,
        step_range=request.step_range,
        container=request.container,
        layers=tuple(
            LayerOutcome(
                name=layer.name,
                available=state.available,
                version=state.version,
                why=state.why,
                facts=layer.about.facts,
            )
            for layer in chosen
            for state in [layer.probe(run_plan.environment)]
        ),
        passes=tuple(pass_record(run_plan, plan, "planned") for plan in run_plan.schedule.passes),
        ranks=run_plan.rank.world,
        job=run_plan.rank.job,
        traced_ranks=request.trace_ranks,
        findings=(*rank_exchange.apart(run_plan), *(one.finding for one in run_plan.clashes)),
    )
    if run_plan.scan is None:  # it cannot be taken up again
        return manifest
    return msgspec.structs.replace(
        manifest, seal=seal.make(run_plan.root, without_secrets(manifest))
    )


def _finish(recorder: Recorder, status: int, told: Sequence[Clash]) -> None:
    stopped = any(record.state == "interrupted" for record in recorder.manifest.passes)
    state = "interrupted" if stopped else "done"
    recorder.tell_lost()
    recorder.update(
        state=state,
        exit_status=status,
        processes=with_ranks(read_hellos(recorder.run.hooks), recorder.manifest.rank_outcomes),
        clocks=read_clock_files(recorder.run),
        findings=recorder.manifest.findings
        if stopped
        else upheld(recorder.manifest.findings, told),
    )
    clean_hellos(recorder.run.hooks)
    pack_profiles(recorder)  # last: nothing is measured any more, and the run is complete without
