"""Taking up a scan that was killed or stopped: its manifest is opened again, and what the
unfinished part left is cleared away.

Points that have a record stay as they are; the one under way is measured again. Telemetry of the
earlier part keeps its files under another name.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import msgspec

from profharness import layers
from profharness.errors import InputError, UsageError
from profharness.launchers.wrappers import wrappers_dir
from profharness.layers.contract import Where
from profharness.measure.plan import RunPlan
from profharness.measure.recorder import Recorder
from profharness.options.request import Request
from profharness.rundir import harness_process
from profharness.rundir.claims import seal
from profharness.rundir.manifest import Manifest, PointRecord, ScanRecord
from profharness.rundir.paths import MANIFEST, RunDir
from profharness.scans.contract import key_of
from profharness.secrets.names import MARKER

_UNFINISHED = ("running", "interrupted", "failed", "planned")


@dataclass(frozen=True)
class Again:
    """How a run is taken up: `retry_failed` measures points again that failed."""

    retry_failed: bool = False


def recorded_request(manifest: Manifest, root: Path) -> Request:
    """What the run was asked. Raises UsageError for a run that cannot be taken up again."""
    if manifest.scan is None:
        raise UsageError(
            f"{root} is the run of a command, which has no points to go on with",
            "run the command again, with another --output",
        )
    state = harness_process.state_of(manifest)
    if state == "running":
        raise UsageError(f"{root}: this run has not ended", "wait for it, or stop it first")
    this_process = harness_process.identify()
    if manifest.harness is not None and (manifest.harness.host, manifest.harness.boot_id) != (
        this_process.host,
        this_process.boot_id,
    ):
        raise UsageError(
            f"{root} was begun on {manifest.harness.host}, or before it was booted again: "
            "times of then and now have no clock in common",
            "make a new run, with another --output",
        )
    return _request_of(manifest.scan, root)


def _request_of(scan: ScanRecord, root: Path) -> Request:
    settings = {**scan.settings, "output": str(root)}
    if lost := sorted(name for name, value in settings.items() if MARKER in str(value)):
        raise UsageError(
            f"--resume: {root} was recorded without the secrets in its settings "
            f"({', '.join(lost)})",
            "make a new run; give secrets in the environment, in PROFHARNESS_TOKEN, or by "
            "--token-file",
        )
    if isinstance(way := settings.get("ragged"), str):  # one way, as runs before had it
        settings["ragged"] = [way]
    try:
        return msgspec.convert(settings, Request)
    except (msgspec.ValidationError, RecursionError) as error:
        raise InputError(
            f"{root / MANIFEST}: the settings of the run cannot be read ({error})",
            "make a new run, with another --output",
        ) from error


def is_complete(manifest: Manifest, again: Again) -> bool:
    """Whether nothing is left to do."""
    if again.retry_failed and failed(manifest):
        return False
    return manifest.state == "done" and all(record.state == "done" for record in manifest.passes)


def _watched(scan: ScanRecord, run_plan: RunPlan, root: Path) -> Request:
    """The request of a run, watched as this one is: that may differ each time it goes on."""
    recorded = _request_of(scan, root)
    return msgspec.structs.replace(recorded, live_page=run_plan.request.live_page)


def reopen(run_plan: RunPlan, again: Again) -> Recorder:
    """The run's recorder, its unfinished passes ready to be taken up.

    Raises UsageError where the directory leads to files outside of it, which might be removed or
    written over.
    """
    run = RunDir.open(run_plan.root)
    _require_within(run.root)
    manifest = run.read_manifest()
    if manifest.scan is None or _watched(manifest.scan, run_plan, run.root) != run_plan.request:
        raise UsageError(
            f"{run.manifest_path} was changed just now: it asks for another run",
            "look at who can write there, then try again",
        )
    if again.retry_failed:
        manifest = _without_failed(run, manifest)
    kept = frozenset((record.pass_name, key_of(record)) for record in manifest.points)
    for folder in sorted((run.root / "points").glob("*/*")):
        if (folder.parent.name, folder.name) not in kept:
            shutil.rmtree(folder)
    for record in manifest.passes:
        if record.state in _UNFINISHED:
            _clear_artifacts(run, manifest, record.name, kept)
    _set_telemetry_aside(run)
    passes = tuple(
        record
        if record.state not in _UNFINISHED
        else msgspec.structs.replace(record, state="planned")
        for record in manifest.passes
    )
    return Recorder(
        run,
        msgspec.structs.replace(
            manifest,
            state="running",
            error="",
            exit_status=None,
            passes=passes,
            harness=harness_process.identify(),
            seal=seal.make(run.root, manifest),  # the user has agreed to what it starts
        ),
    )


def failed(manifest: Manifest) -> tuple[PointRecord, ...]:
    """The records of points that could not be measured, those included that were skipped after
    that.
    """
    return tuple(record for record in manifest.points if record.state in ("failed", "skipped"))


def _without_failed(run: RunDir, manifest: Manifest) -> Manifest:
    """The manifest as if the points that failed had never been begun. What was said of the
    failures is taken back; measuring says it again where they come again.
    """
    gone = {(record.pass_name, key_of(record)) for record in failed(manifest)}
    ids = {record.id for record in failed(manifest)}
    passes = {pass_name for pass_name, _ in gone}
    dropped = [one for one in manifest.artifacts if (one.pass_name, one.point) in gone]
    for artifact in dropped:
        _unlink_within(run.root, artifact.path)
    return msgspec.structs.replace(
        manifest,
        points=tuple(one for one in manifest.points if (one.pass_name, key_of(one)) not in gone),
        artifacts=tuple(one for one in manifest.artifacts if one not in dropped),
        findings=tuple(
            one for one in manifest.findings if one.id != "point-failed" or one.point not in ids
        ),
        passes=tuple(
            msgspec.structs.replace(record, state="failed") if record.name in passes else record
            for record in manifest.passes
        ),
    )


def _require_within(root: Path) -> None:
    """Raises UsageError where one of the folders that are written to or cleared is a link to a
    place outside of the run.
    """
    inside = root.resolve()
    for folder in ("control", "points", "telemetry", "artifacts"):
        for depth in ("", "/*", "/*/*"):
            for path in root.glob(folder + depth):
                if path.is_symlink() and not path.resolve().is_relative_to(inside):
                    raise UsageError(
                        f"{path} leads out of the run directory, and might be written to",
                        "remove it, or make a new run, with another --output",
                    )


def _unlink_within(root: Path, named: str) -> None:
    """Remove a file that a manifest names, and what stands beside it, if it lies in the run."""
    path = root / named
    if path.parent.resolve().is_relative_to(root.resolve()):
        path.unlink(missing_ok=True)
        path.with_name(path.name + ".profharness.json").unlink(missing_ok=True)


def _clear_artifacts(
    run: RunDir, manifest: Manifest, pass_name: str, kept: frozenset[tuple[str, str]]
) -> None:
    """Files of a point that is measured again would be read beside those of its second
    measurement.
    """
    record = manifest.pass_named(pass_name)
    if record is None:
        return
    recorded = frozenset(artifact.path for artifact in manifest.artifacts)
    where = Where(run_root=run.root, pass_name=pass_name, wrappers=wrappers_dir(), host="")
    for layer in layers.members():
        left = layers.collect(layer, where, recorded) if layer.name in record.layers else ()
        for artifact in left:
            if artifact.point and (pass_name, artifact.point) not in kept:
                path = run.root / artifact.path
                path.unlink(missing_ok=True)
                path.with_name(path.name + ".profharness.json").unlink(missing_ok=True)


def _set_telemetry_aside(run: RunDir) -> None:
    """HOST.samples.bin becomes HOST.before1.samples.bin, and so on with each time that the run is
    taken up.
    """
    for ready in sorted(run.telemetry.glob("*.spec.json")):
        host = ready.name.removesuffix(".spec.json")
        if ".before" in host:
            continue
        number = 1 + len(list(run.telemetry.glob(f"{host}.before*.spec.json")))
        for path in sorted(run.telemetry.glob(f"{host}.*")):
            if not path.name.startswith(f"{host}.before"):
                path.rename(
                    path.with_name(path.name.replace(f"{host}.", f"{host}.before{number}.", 1))
                )
