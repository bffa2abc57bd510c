"""An attachment carried out: the run directory, telemetry beside it, the tool's files, and what
went wrong.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from profharness import layers
from profharness.findings import Finding, finding
from profharness.launchers import describe_exit
from profharness.layers.recorded import holds_kernels
from profharness.measure.attached import session
from profharness.measure.attached.plan import AttachPlan
from profharness.measure.attached.session import Ended, Order
from profharness.measure.attached.target import ATTACH_VARIABLE, LISTENER
from profharness.measure.claims.holding import held
from profharness.measure.engine import new_manifest
from profharness.measure.pass_commands import difference
from profharness.measure.pass_records import FindSecrets, pass_record
from profharness.measure.recorder import Recorder
from profharness.measure.sampler import Sampler
from profharness.rundir.clock_files import read_clock_files
from profharness.rundir.manifest import Artifact
from profharness.rundir.paths import RunDir
from profharness.supervise.tool import read_logs

# what a tool says when it could not attach, and what that means
_SENTENCES = (
    (
        rf"{LISTENER}\W+thread not found|does not appear to have attach support",
        (
            f"the process does not wait for tools, although it may have {ATTACH_VARIABLE}=1 "
            "(a runtime that its own wheels bring may not support it)"
        ),
    ),
    (
        # its other exceptions tell a status of the library
        r"RuntimeError: (?!Exception during|.*non-zero status)",
        (
            "the tool was attached to this process before and takes no other traces or counters; "
            "ask for the same ones, or start the program anew"
        ),
    ),
    (
        r"Operation not permitted|ptrace.*(?:EPERM|denied)",
        "the kernel did not let the tool trace the process",
    ),
)


@dataclass(frozen=True)
class Attached:
    """The run and how it went. `nothing` says why the tool left nothing; empty where it did."""

    run: RunDir
    ended: Ended
    nothing: str = ""


def carry_out(
    plan: AttachPlan,
    argv: tuple[str, ...],
    find_secrets: FindSecrets,
    begin: Callable[[], None],
) -> Attached:
    """Attach, record, let go; `begin` is called before the tool starts. The run directory is
    complete when this returns, also after Ctrl-C.

    Raises Unavailable where the tool cannot be started, and as `held` does.
    """
    with held(plan.run_plan) as run_plan:
        return _carry_out(plan.at(run_plan), argv, find_secrets, begin)


def _carry_out(
    plan: AttachPlan,
    argv: tuple[str, ...],
    find_secrets: FindSecrets,
    begin: Callable[[], None],
) -> Attached:
    run_plan, passed = plan.run_plan, plan.pass_plan
    manifest = msgspec.structs.replace(new_manifest(run_plan, argv), attached=plan.target.pid)
    recorder = Recorder(RunDir(run_plan.root), manifest, shared=run_plan.request.share)
    _let_in(plan)
    order = _order(plan)
    try:
        with Sampler(recorder.run, run_plan.request, run_plan.host, recorder) as sampler:
            sampler.follow(plan.target.pid)
            _make_folders(plan, order)
            begin()
            now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
            recorder.set_pass(pass_record(run_plan, passed, "running", start_boot_ns=now))
            ended = session.run(order, sampler.check)
    except BaseException as error:  # the manifest says how the run ended, whatever ended it
        recorder.set_ended(error)
        raise
    nothing = _record(plan, ended, recorder, find_secrets)
    state = "interrupted" if ended.outcome.forwarded else "done"
    recorder.update(state=state, clocks=read_clock_files(recorder.run))
    return Attached(recorder.run, ended, nothing)


def _let_in(plan: AttachPlan) -> None:
    """A process of another user writes the tool's files itself: it must be able to pass through
    the run directory, which it still cannot list.
    """
    root = plan.run_plan.root
    if plan.attachment is not None and os.geteuid() == 0 and plan.target.owner != 0:
        root.chmod(stat.S_IMODE(root.stat().st_mode) | stat.S_IXGRP | stat.S_IXOTH)


def _order(plan: AttachPlan) -> Order:
    run = RunDir(plan.run_plan.root)
    name = plan.pass_plan.layers[0].name if plan.pass_plan.layers else ""
    return Order(
        plan.target,
        plan.for_ns,
        plan.attachment,
        run.root / "artifacts" / name,
        run.point_path(plan.pass_plan.name, "rank0") / "stderr.log",
        plan.run_plan.request.exit_limit,
    )


def _make_folders(plan: AttachPlan, order: Order) -> None:
    """What the tool's files need. The process writes them itself, as its own user."""
    if plan.attachment is None:
        return
    order.folder.mkdir(parents=True, exist_ok=True)
    if os.geteuid() == 0 and plan.target.owner != 0:
        os.chown(order.folder, plan.target.owner, plan.target.group)


def _record(plan: AttachPlan, ended: Ended, recorder: Recorder, find_secrets: FindSecrets) -> str:
    """Write down how it went, the files and the findings; why there is nothing, if so."""
    run_plan, passed, command = plan.run_plan, plan.pass_plan, plan.attachment
    recorder.set_pass(
        pass_record(
            run_plan,
            passed,
            "interrupted" if ended.outcome.forwarded else "done",
            argv=() if command is None else (command.command.argv,),
            env={} if command is None else difference(command.command),
            executions=1,
            start_boot_ns=ended.outcome.start_boot_ns,
            end_boot_ns=ended.outcome.end_boot_ns,
        )
    )
    if command is None:
        return ""
    where = run_plan.where(passed, is_worker=False)
    artifacts = layers.collect(passed.layers[0], where, frozenset())
    recorder.add_artifacts(artifacts)
    said = read_logs([_order(plan).log])
    nothing = why_nothing(plan, ended, said) if not any(not one.aside for one in artifacts) else ""
    for one in (
        *_of_counters(plan),
        *_findings(plan, ended, said, artifacts),
        *((finding("profiler-failed", nothing),) if nothing else ()),
        *find_secrets(recorder.run.root, artifacts),
    ):
        recorder.add_finding(one)
    return nothing


def why_nothing(plan: AttachPlan, ended: Ended, said: str) -> str:
    """A sentence on a tool that left no file to read."""
    layer = plan.pass_plan.layer_names[0]
    told = next((why for pattern, why in _SENTENCES if re.search(pattern, said)), "")
    line = _last_line(said)
    if not told:
        status = ended.outcome.exit_status
        told = f"it {describe_exit(status)}" if status else "no file came from it"
        if not ended.target_goes_on:
            told = f"the process ended meanwhile, and {told}"
    return f"{layer} recorded nothing of {plan.target.name}: {told}" + (
        f" ({line})" if line else ""
    )


def _of_counters(plan: AttachPlan) -> tuple[Finding, ...]:
    if not plan.pass_plan.perturbing:
        return ()
    message = f"counting changes the speed of {plan.target.name}: no verdict rests on these times"
    return (finding("serialising-counters", message),)


def _findings(
    plan: AttachPlan, ended: Ended, said: str, artifacts: Sequence[Artifact]
) -> tuple[Finding, ...]:
    """What else went wrong with the tool."""
    layer, target = plan.pass_plan.layer_names[0], plan.target
    goes_on = "goes on" if ended.target_goes_on else "has ended"
    read = [one for one in artifacts if not one.aside]
    if ended.left:
        return (
            finding(
                "profiler-hung",
                f"{layer} holds {target.name} by ptrace and did not answer: it was left alone, "
                "since to end it now could crash the program; look at it, and end it by hand "
                f"(process {ended.left})",
            ),
        )
    if ended.hung:
        return (
            finding(
                "profiler-hung",
                f"{layer} did not let go of {target.name} when it was told to, and wrote nothing "
                f"for a while: it was ended; {target.name} {goes_on}",
            ),
        )
    if read and ended.outcome.exit_status and not ended.outcome.forwarded:
        return (
            finding(
                "profiler-failed",
                f"{layer} {describe_exit(ended.outcome.exit_status)}; its files are kept "
                f"({_last_line(said)})",
                severity="warning",
            ),
        )
    root = plan.run_plan.root
    if read and all(holds_kernels(root / one.path, one.format) is False for one in read):
        return (
            finding(
                "empty-trace",
                f"{layer} wrote {len(read)} file{'s' * (len(read) != 1)} but recorded no kernel: "
                f"{target.name} launched none in {ended.lasted_ns / 1e9:.1f} s, or its work is "
                "done by another process",
                files=len(read),
            ),
        )
    return ()


def _last_line(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return lines[-1][:200] if lines else ""
