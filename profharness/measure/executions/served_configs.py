"""The recommended setting of a scan of servers as config.pbtxt, written into the run."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from profharness.errors import InputError
from profharness.rundir.manifest import PointRecord
from profharness.rundir.paths import RunDir, write_atomic
from profharness.scans.settings_scan import SettingsScan
from profharness.serving import ready
from profharness.serving.recommended import configurations
from profharness.workers.server import READY

FOLDER = "served"
_BARE = "bare"


def write(run: RunDir, scan: SettingsScan, done: list[PointRecord]) -> tuple[Path, ...]:
    """served/BACKEND/MODEL/config.pbtxt of the recommended point of the bare pass, in place of
    earlier ones; none where nothing was measured, or the server is not ours.
    """
    folder = run.root / FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    name = scan.recommended(done)
    if name is None:
        return ()
    label = scan.variants[name].label
    asked = scan.services[label].request
    if not (asked.served and asked.managed):
        return ()
    try:
        described = ready.read(run.control_dir(_BARE) / label / READY)
    except InputError:  # the server did not start, and the point came from an earlier part of a run
        return ()
    written = []
    for model in described.models:
        own = _name(asked.model) if len(described.models) == 1 else model.name
        for backend, text in configurations(model, own).items():
            path = folder / backend / own / "config.pbtxt"
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(path, text.encode())
            written.append(path)
    return tuple(written)


def _name(model: str) -> str:
    """A model's name in a repository, from its file or its name."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", Path(model.split(":", maxsplit=1)[0]).stem) or "model"
