"""Compresses the JSON that hooks let a profiler write, once nothing of the run is measured any
more.

A hook could write it compressed, as `export_chrome_trace` does for a name ending in .gz. That would
keep the workload waiting in the middle of its steps: torch compresses 83 MB line by line and as
much as zlib can, which takes 11 s of processor time instead of the one second here.

A kill at any moment leaves each profile once, or twice of which readers take one: the packed files
are complete before the manifest names them, and the plain ones go after that.
"""

from __future__ import annotations

import os
import shutil
import threading
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import msgspec

from profharness.errors import InputError
from profharness.measure.recorder import Recorder
from profharness.rundir.foreign.limits import SIDECAR_BYTES
from profharness.rundir.foreign.small_files import read_file
from profharness.rundir.layer_facts import LayerFacts
from profharness.rundir.left_files import BESIDE, PACKED, names_profile
from profharness.rundir.manifest import Artifact
from profharness.rundir.outputs import temporary_beside

LEVEL = 6
_BLOCK_BYTES = 1 << 20
_THREADS = 4
_GZIP = 16 + zlib.MAX_WBITS  # with the header of gzip, whose time is zero: equal files stay equal


@dataclass(frozen=True)
class _Packed:
    """A profile, and the size of its packed copy."""

    artifact: Artifact
    size_bytes: int


class _StoppedError(Exception):
    """The run is being ended by a signal: the file stays as it is."""


def pack_profiles(recorder: Recorder) -> None:
    """Compress every complete profile that a hook left as plain JSON, and name the new files in the
    manifest. What cannot be written stays as it is: nothing of it is lost.
    """
    root = recorder.run.root
    packed = _pack_all(root, list(_profiles(root, recorder)))
    if not packed:
        return
    sizes = {one.artifact.path: one.size_bytes for one in packed}
    recorder.update(
        artifacts=tuple(_named(artifact, sizes) for artifact in recorder.manifest.artifacts)
    )
    if not recorder.unwritten:
        for path in sizes:
            _forget(root / path)


def _profiles(root: Path, recorder: Recorder) -> Iterator[Artifact]:
    """Those that are complete: their hook has written the sidecar once the profiler had closed the
    file.
    """
    facts = recorder.manifest.layer_facts()
    for artifact in recorder.manifest.artifacts:
        if _may_be_packed(artifact, facts) and (root / (artifact.path + BESIDE)).is_file():
            yield artifact


def _may_be_packed(artifact: Artifact, facts: dict[str, LayerFacts]) -> bool:
    """Whether the layer's readers find the file again under its new name."""
    name, layer = Path(artifact.path).name, facts.get(artifact.layer)
    return (
        layer is not None
        and layer.leaves.place == "hook"
        and not name.endswith(PACKED)
        and names_profile(layer.leaves, name + PACKED)
    )


def _named(artifact: Artifact, sizes: dict[str, int]) -> Artifact:
    size = sizes.get(artifact.path)
    if size is None:
        return artifact
    return msgspec.structs.replace(artifact, path=artifact.path + PACKED, size_bytes=size)


def _pack_all(root: Path, artifacts: list[Artifact]) -> list[_Packed]:
    """Several at a time: zlib lets other threads run."""
    if not artifacts:
        return []
    stop = threading.Event()
    workers = min(_THREADS, len(os.sched_getaffinity(0)), len(artifacts))
    with ThreadPoolExecutor(workers) as pool:
        try:
            made = pool.map(lambda artifact: _pack(root, artifact, stop), artifacts)
            return [one for one in made if one is not None]
        except BaseException:  # Ctrl-C too: the plain files are all there
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise


def _pack(root: Path, artifact: Artifact, stop: threading.Event) -> _Packed | None:
    plain = root / artifact.path
    packed = plain.with_name(plain.name + PACKED)
    try:
        size = _compress(plain, packed, stop)
        _copy_sidecar(plain, packed)
    except (OSError, ValueError, InputError, _StoppedError):
        _forget(packed)
        return None
    return _Packed(artifact, size)


def _compress(plain: Path, packed: Path, stop: threading.Event) -> int:
    """Write `packed`, which appears as a whole with the times and the mode of `plain`; its size."""
    handle, temporary = temporary_beside(packed)
    try:
        with os.fdopen(handle, "wb") as out, plain.open("rb") as file:
            out.writelines(_compressed(file, stop))
            out.flush()
            os.fsync(out.fileno())
        shutil.copystat(plain, temporary)
        temporary.replace(packed)
    except BaseException:  # a signal too: no half file stays
        temporary.unlink(missing_ok=True)
        raise
    return packed.stat().st_size


def _compressed(file: BinaryIO, stop: threading.Event) -> Iterator[bytes]:
    member = zlib.compressobj(LEVEL, wbits=_GZIP)
    while block := file.read(_BLOCK_BYTES):
        if stop.is_set():
            raise _StoppedError
        yield member.compress(block)
    yield member.flush()


def _copy_sidecar(plain: Path, packed: Path) -> None:
    """The sidecar of the packed file, which names it. Raises ValueError for a damaged one."""
    data = read_file(plain.with_name(plain.name + BESIDE), SIDECAR_BYTES)
    record = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    record["file"] = msgspec.Raw(msgspec.json.encode(packed.name))
    packed.with_name(packed.name + BESIDE).write_bytes(msgspec.json.encode(record))


def _forget(path: Path) -> None:
    """Remove a profile with its sidecar."""
    for name in (path.name, path.name + BESIDE):
        path.with_name(name).unlink(missing_ok=True)
