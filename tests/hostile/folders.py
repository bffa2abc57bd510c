"""Changes of folders: files that are missing, of another kind, exchanged, or lead elsewhere."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

Change = Callable[[Path, random.Random], None]
_SPARSE = 400 << 20


def is_own(path: Path) -> bool:
    """Whether it is a file that may be written to: a link may lead out of the folder by now."""
    return path.is_file() and not path.is_symlink()


def _some_file(folder: Path, rng: random.Random) -> Path:
    return rng.choice(sorted(path for path in folder.rglob("*") if is_own(path)))


def _folders(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_dir() and not path.is_symlink())


def remove(folder: Path, rng: random.Random) -> None:
    _some_file(folder, rng).unlink()


def remove_folder(folder: Path, rng: random.Random) -> None:
    inside = _folders(folder)
    if inside:
        shutil.rmtree(rng.choice(inside))


def exchange(folder: Path, rng: random.Random) -> None:
    one, other = _some_file(folder, rng), _some_file(folder, rng)
    if one != other:
        data = one.read_bytes()
        one.write_bytes(other.read_bytes())
        other.write_bytes(data)


def folder_for_file(folder: Path, rng: random.Random) -> None:
    path = _some_file(folder, rng)
    path.unlink()
    path.mkdir()


def fifo(folder: Path, rng: random.Random) -> None:
    """A pipe into which nobody writes."""
    path = _some_file(folder, rng)
    path.unlink()
    os.mkfifo(path)


def link(folder: Path, rng: random.Random) -> None:
    """A link to itself, to nowhere, to a device, or out of the folder."""
    path = _some_file(folder, rng)
    path.unlink()
    path.symlink_to(rng.choice((path.name, "/nowhere", "/dev/zero", "/etc/passwd", "/", "..")))


def link_folder(folder: Path, rng: random.Random) -> None:
    """A folder that holds itself."""
    link = rng.choice([*_folders(folder), folder]) / "again"
    if not link.is_symlink():
        link.symlink_to(folder, target_is_directory=True)


def empty(folder: Path, rng: random.Random) -> None:
    _some_file(folder, rng).write_bytes(b"")


def sparse(folder: Path, rng: random.Random) -> None:
    """A file grows to 400 MB of zeros that take no place."""
    os.truncate(_some_file(folder, rng), _SPARSE)


def stranger(folder: Path, rng: random.Random) -> None:
    """A file that no tool wrote, under a name that one might have."""
    names = ("x.json", "9_kernel_trace.csv", "a\nb.csv", "\x1b[31m.json", "é" * 60 + ".db", "-o")
    (folder / rng.choice(names)).write_bytes(
        rng.choice((b"", b"{}", b"[" * 9999, rng.randbytes(99)))
    )


CHANGES: tuple[Change, ...] = (
    remove, remove, remove_folder, exchange, folder_for_file, fifo, link, link_folder, empty, sparse,
    stranger,
)  # fmt: skip


def change(folder: Path, rng: random.Random) -> str:
    """One change of the folder itself, and its name."""
    chosen = rng.choice(CHANGES)
    try:
        chosen(folder, rng)
    except IndexError:
        return "folder.nothing"  # no file is left
    return f"folder.{chosen.__name__}"
