"""Keeps the manifest on disk true: every change is written atomically, so that a kill loses at most
one point.
"""

from __future__ import annotations

import csv
import io
from typing import Any

import msgspec

from profharness.errors import ProfharnessError
from profharness.findings import Finding
from profharness.rundir.lost import LostFile, lost_finding
from profharness.rundir.manifest import Artifact, Manifest, PassRecord, PointRecord
from profharness.rundir.paths import RunDir, write_atomic
from profharness.secrets.patterns import clean_argv, clean_setting, clean_variables

TRIAL_COLUMNS = ("trial", "kind", "start_monotonic_ns", "dur_ns", "items")


_WITH_COMMANDS = {"argv", "command", "scan", "passes", "processes"}


class Recorder:
    """The current manifest of one run directory.

    A disk that fills up while a workload runs, or goes away, is no reason to end the workload: the
    manifest is then kept in memory and written with the next change that finds room. `unwritten`
    says why the file on disk is older; empty where it is not.
    """

    def __init__(self, run: RunDir, manifest: Manifest, *, shared: bool = False) -> None:
        self.run = run
        self.manifest = without_secrets(manifest)
        self.unwritten = ""
        self._lost: list[LostFile] = []
        run.write_manifest(self.manifest, shared=shared)

    def update(self, **changes: Any) -> None:
        """Replace fields of the manifest and write it."""
        changed = msgspec.structs.replace(self.manifest, **changes)
        self.manifest = without_secrets(changed) if changes.keys() & _WITH_COMMANDS else changed
        try:
            self.run.write_manifest(self.manifest)
            self.unwritten = ""
        except OSError as error:
            self.unwritten = error.strerror or str(error)

    def lose(self, *lost: LostFile) -> None:
        """Something of the run could not be written; told in one finding when the run ends."""
        self._lost += lost

    def tell_lost(self) -> None:
        """Add the finding on what was lost, if anything was; for the end of a run."""
        told = lost_finding(self._lost, self.run.root)
        if told is not None:
            self.add_finding(told)

    def set_pass(self, record: PassRecord) -> None:
        """Add the pass, or replace the one of the same name."""
        passes = self.manifest.passes
        if self.manifest.pass_named(record.name) is None:
            self.update(passes=(*passes, record))
        else:
            self.update(passes=tuple(record if old.name == record.name else old for old in passes))

    def set_ended(self, error: BaseException) -> None:
        """The harness failed, or Ctrl-C came between two processes: the run and its current pass
        ended by that.
        """
        state = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
        reason = (
            error.message
            if isinstance(error, ProfharnessError)
            else f"{type(error).__name__}: {error}"
        )
        passes = tuple(
            msgspec.structs.replace(record, state=state) if record.state == "running" else record
            for record in self.manifest.passes
        )
        self.update(state=state, error="" if state == "interrupted" else reason, passes=passes)
        self.tell_lost()

    def add_point(self, record: PointRecord) -> None:
        """Put one measured point behind the others."""
        self.update(points=(*self.manifest.points, record))

    def add_artifacts(self, artifacts: tuple[Artifact, ...]) -> None:
        """Put the files that a pass left behind the others."""
        if artifacts:
            self.update(artifacts=(*self.manifest.artifacts, *artifacts))

    def add_finding(self, finding: Finding) -> None:
        """Put one finding behind the others."""
        self.update(findings=(*self.manifest.findings, finding))

    def write_trials(
        self,
        pass_name: str,
        point_key: str,
        rows: list[tuple[int, str, int, int, int]],
        *,
        process: int | None = None,
    ) -> None:
        """trials.csv of one point: trial number, warmup or trial, start (CLOCK_MONOTONIC ns),
        duration ns, items.

        Of a point that several processes measured each has its own, trials-<n>.csv.
        """
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(TRIAL_COLUMNS)
        writer.writerows(rows)
        write_atomic(
            self.run.point_dir(pass_name, point_key)
            / ("trials.csv" if process is None else f"trials-{process}.csv"),
            text.getvalue().encode(),
        )


def without_secrets(manifest: Manifest) -> Manifest:
    """The manifest with the values of secret-looking variables and options replaced in all command
    lines and environments.
    """
    replaced = msgspec.structs.replace
    scan = manifest.scan
    if scan is not None:
        scan = replaced(
            scan, settings={name: clean_setting(value) for name, value in scan.settings.items()}
        )
    return replaced(
        manifest,
        argv=clean_argv(manifest.argv),
        command=clean_argv(manifest.command),
        scan=scan,
        passes=tuple(
            replaced(
                record,
                argv=tuple(clean_argv(argv) for argv in record.argv),
                env=clean_variables(record.env),
            )
            for record in manifest.passes
        ),
        processes=tuple(
            replaced(hello, argv=clean_argv(hello.argv)) for hello in manifest.processes
        ),
    )
