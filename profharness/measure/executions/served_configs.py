"""The recommended setting of a scan of servers as config.pbtxt, written into the run."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from profharness.analysis.axes.records import AxesScan
from profharness.errors import InputError
from profharness.rundir.manifest import Manifest
from profharness.rundir.paths import RunDir, write_atomic
from profharness.serving import ready
from profharness.serving.recommended import configurations

FOLDER = "served"
_BARE = "bare"
_READY = "server-ready.json"


def write(run: RunDir, manifest: Manifest, scan: AxesScan) -> tuple[Path, ...]:
    """served/BACKEND/MODEL/config.pbtxt of the recommended point, in place of earlier ones; none
    where the server was not ours, or left no description of itself.
    """
    folder = run.root / FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    record = next((one for one in manifest.points if one.id == scan.recommended), None)
    if not scan.serve or record is None:
        return ()
    try:
        described = ready.read(run.root / "control" / _BARE / record.backend / _READY)
    except InputError:  # of a run that was copied without it
        return ()
    name = _name(str(manifest.scan.settings.get("model", "")) if manifest.scan else "")
    written = []
    for model in described.models:
        own = name if len(described.models) == 1 else model.name
        for backend, text in configurations(model, own).items():
            path = folder / backend / own / "config.pbtxt"
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(path, text.encode())
            written.append(path)
    return tuple(written)


def _name(model: str) -> str:
    """A model's name in a repository, from its file or its name."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", Path(model.split(":", maxsplit=1)[0]).stem) or "model"
