"""Makes a certificate: reads and hashes the run's records, and judges the figures from them."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from profharness import __version__
from profharness.analysis.certificate.document import Certificate
from profharness.analysis.certificate.judge import judge
from profharness.analysis.certificate.records import Judgement
from profharness.analysis.certificate.subject import subject_of
from profharness.errors import InputError
from profharness.node import ceilings
from profharness.node.ceilings import Calibration
from profharness.rundir.covered.files import REMOVED, FileHash, hash_of, listed
from profharness.rundir.manifest import Manifest
from profharness.rundir.paths import RunDir
from profharness.rundir.private.folders import private_folder
from profharness.secrets import database, scrub
from profharness.understand import report_run


def certify(root: Path, point: str = "") -> Certificate:
    """The certificate of a run, of its `point` of that name or of the one with the highest
    throughput. Raises InputError for what is no run or cannot be read, UsageError for a point that
    there is not.
    """
    run = RunDir.open(root)
    manifest = run.read_manifest()
    found = listed(root)
    files = tuple(_hashed(root, name) for name in found.paths)
    calibrations = _calibrations(root, manifest)
    return Certificate(
        profharness=__version__,
        certified=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        run=manifest.id,
        made=manifest.created,
        judgement=judged(root, point, calibrations),
        calibrations=calibrations,
        files=files,
        left_out=found.left_out,
    )


def judged(root: Path, point: str, calibrations: tuple[Calibration, ...]) -> Judgement:
    """What the run's records say of the point, held against these ceilings. Raises as `certify`."""
    loaded = report_run.load([root])
    assert loaded.manifest is not None  # of a run
    summary = report_run.summarise(loaded, calibrations=calibrations)
    return judge(subject_of(loaded.manifest, summary, point))


def _calibrations(root: Path, manifest: Manifest) -> tuple[Calibration, ...]:
    """Those that the run keeps of its devices, then those of this machine."""
    names = {node.cpu_model for node in manifest.nodes}
    names |= {device.name for node in manifest.nodes for device in node.devices}
    return ceilings.relevant(ceilings.for_run(root), names - {""})


def _hashed(root: Path, name: str) -> FileHash:
    """The hash of a file, and what becomes of it when its secrets are removed."""
    file = hash_of(root, name)
    path = root / name
    if path.is_symlink():
        return file
    try:
        of = database.database_beside(path)
        if of is not None:
            clean = REMOVED if scrub.scan(of) else ""
        else:
            clean = _clean(path) if scrub.scan(path) else ""
    except (InputError, OSError):
        return file  # it cannot be looked into, and so not be scrubbed
    return msgspec.structs.replace(file, scrubbed=clean)


def _clean(path: Path) -> str:
    """The hash that the file has without its secrets. Raises InputError and OSError where these
    cannot be removed.
    """
    with private_folder() as folder:
        for one in path.parent.iterdir():
            if one == path or database.database_beside(one) == path:
                shutil.copyfile(one, folder / one.name)
        scrub.scrub(folder / path.name)
        return hash_of(folder, path.name).sha256
