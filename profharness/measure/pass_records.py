"""How rank 0 writes the passes of a run into the manifest: their states, files and findings."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from profharness.findings import Finding
from profharness.launchers import Launcher
from profharness.measure import counter_split, rank_exchange
from profharness.measure.pass_commands import planned_extras
from profharness.measure.passes import EndedPass
from profharness.measure.plan import RunPlan, planned_keys
from profharness.measure.recorder import Recorder
from profharness.rundir.lost import LostFile
from profharness.rundir.manifest import Artifact, PassRecord, PassState
from profharness.supervise import sentences
from profharness.supervise.pass_plan import PassPlan

FindSecrets = Callable[[Path, Sequence[Artifact]], tuple[Finding, ...]]
"""Searches the files of a pass, which lie below a folder, for values that look secret.

It reads the formats of foreign tools, which measuring does not know: the command line hands it in.
"""


@dataclass(frozen=True)
class ManifestRecords:
    """The records of rank 0, or of the only process."""

    run_plan: RunPlan
    recorder: Recorder
    find_secrets: FindSecrets

    def begin(self, plan: PassPlan) -> None:
        """The manifest says that the pass is running, from now on CLOCK_BOOTTIME."""
        now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        self.recorder.set_pass(pass_record(self.run_plan, plan, "running", start_boot_ns=now))

    def end(self, ended: EndedPass) -> bool:
        """Whether any rank's tool refused the counters, and no signal ended the pass.

        A command's pass is done when the command has ended; one of a scan once its files are
        recorded too, because
        --resume takes up what is not done.
        """
        if self.run_plan.scan is not None:
            refused = self._record_files(ended)
            self._record_end(ended)
        else:
            self._record_end(ended)
            refused_elsewhere = rank_exchange.gather(self.run_plan, ended, self.recorder)
            refused = self._record_files(ended) or refused_elsewhere
        return refused and not ended.execution.signals

    def split(self, ended: EndedPass, halves: Sequence[PassPlan]) -> None:
        """Put the halves behind the refused pass in the manifest, with their points where it is a
        scan, and say so.
        """
        plan, recorder = ended.plan, self.recorder
        line = sentences.refused_line(ended.stderr_text)
        recorder.add_finding(counter_split.refusal_finding(plan, halves, line))
        manifest = recorder.manifest
        whole = manifest.pass_named(plan.name)
        if whole is None:
            return
        at = manifest.passes.index(whole)
        whole = msgspec.structs.replace(
            whole,
            state="done" if halves else "failed",
            split=tuple(half.name for half in halves),
        )
        fresh = [pass_record(self.run_plan, half, "planned") for half in halves]
        recorder.update(passes=(*manifest.passes[:at], whole, *fresh, *manifest.passes[at + 1 :]))
        scan = self.run_plan.scan
        if halves and manifest.scan is not None and scan is not None:
            planned = {
                name: keys for name, keys in manifest.scan.planned.items() if name != plan.name
            }
            planned |= {half.name: planned_keys(scan, half) for half in halves}
            recorder.update(scan=msgspec.structs.replace(manifest.scan, planned=planned))

    def lose(self, *lost: LostFile) -> None:
        """Told in one finding when the run ends."""
        self.recorder.lose(*lost)

    def _record_files(self, ended: EndedPass) -> bool:
        """Record the files that are there now, and the findings on them; whether the tool refused
        the counters.

        What a refused pass left is kept and not read: it holds none of what the pass was for.
        """
        recorder = self.recorder
        recorded = frozenset(artifact.path for artifact in recorder.manifest.artifacts)
        files = examine(ended, self.run_plan.launcher, recorded)
        refused = ended.tool.refused(ended.stderr_text, files.artifacts)
        recorder.add_artifacts(
            tuple(msgspec.structs.replace(artifact, aside=True) for artifact in files.artifacts)
            if refused
            else files.artifacts
        )
        for finding in (
            *ended.tool.findings(
                ended.execution.last, ended.stderr_text, recorder.manifest.artifacts
            ),
            *files.findings,
            *self.find_secrets(recorder.run.root, files.artifacts),
        ):
            recorder.add_finding(finding)
        return refused

    def _record_end(self, ended: EndedPass) -> None:
        execution = ended.execution
        is_command = self.run_plan.scan is None
        self.recorder.set_pass(
            pass_record(
                self.run_plan,
                ended.plan,
                "interrupted" if execution.signals else "done",
                argv=execution.argv,
                env=dict(execution.env),
                executions=len(execution.outcomes),
                exit_status=ended.workload_status if is_command else execution.last.exit_status,
                start_boot_ns=execution.outcomes[0].start_boot_ns,
                end_boot_ns=execution.last.end_boot_ns,
            )
        )


@dataclass(frozen=True)
class PassFiles:
    """What a pass left, and what went wrong when the tool analysed it."""

    artifacts: tuple[Artifact, ...]
    findings: tuple[Finding, ...]


def examine(
    ended: EndedPass, launcher: Launcher, recorded: frozenset[str] = frozenset()
) -> PassFiles:
    """Run the tool's own analysis of what it left, then list the files of the pass's layers that
    are not in `recorded`.
    """
    findings = ended.tool.follow_up(launcher, ended.execution.last)
    return PassFiles(ended.tool.collect(recorded), findings)


def pass_record(run_plan: RunPlan, plan: PassPlan, state: PassState, **facts: Any) -> PassRecord:
    """The manifest's record of a pass."""
    return PassRecord(
        name=plan.name,
        layers=plan.layer_names,
        counters=plan.counters,
        groups=plan.groups,
        purpose=plan.purpose.name if plan.purpose else "",
        perturbing=plan.perturbing,
        state=state,
        cut=planned_extras(run_plan, plan).cut if plan.layers else "",
        **facts,
    )
