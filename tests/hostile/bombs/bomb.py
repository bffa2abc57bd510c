"""What a bomb is, and what those that write one have in common."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = "{}"
"""Stands for the bomb in a command line."""
_AT_ONCE = 4 << 20


@dataclass(frozen=True)
class Bomb:
    """A hostile input: `write(folder, scale)` makes it in an empty folder, always the same bytes,
    and returns the path to be given. `scale` is 1 for the bomb itself, and less for a smaller one.
    """

    name: str
    write: Callable[[Path, float], Path]
    lines: tuple[tuple[str, ...], ...]


def lines(*texts: str) -> tuple[tuple[str, ...], ...]:
    """Command lines from text; one that names no place for the bomb gets it behind its command."""
    found = []
    for text in texts:
        first, *rest = text.split()
        found.append((first, *rest) if HERE in rest else (first, HERE, *rest))
    return tuple(found)


def scaled(count: int, scale: float) -> int:
    """So many of something in a bomb of this scale, and never none."""
    return max(1, round(count * scale))


def pack(path: Path, parts: Iterable[bytes | str]) -> Path:
    """The parts as one gzipped file, the same bytes each time."""
    with path.open("wb") as raw, gzip.GzipFile("", "wb", 6, raw, mtime=0) as file:
        for block in _blocks(parts):
            file.write(block)
    return path


def plain(path: Path, parts: Iterable[bytes | str]) -> Path:
    """The parts as one file."""
    with path.open("wb") as file:
        for block in _blocks(parts):
            file.write(block)
    return path


def pack_file(path: Path) -> Path:
    """The file gzipped, in its place."""
    packed = path.with_name(f"{path.name}.gz")
    with path.open("rb") as file:
        pack(packed, iter(lambda: file.read(_AT_ONCE), b""))
    path.unlink()
    return packed


def _blocks(parts: Iterable[bytes | str]) -> Iterator[bytes]:
    held: list[bytes] = []
    size = 0
    for part in parts:
        held.append(part.encode() if isinstance(part, str) else part)
        size += len(held[-1])
        if size >= _AT_ONCE:
            yield b"".join(held)
            held, size = [], 0
    yield b"".join(held)
