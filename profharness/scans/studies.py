"""The published studies that come along as scan files, by name: `profharness run
particlenet-onnx`.
"""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent / "published"


def names() -> tuple[str, ...]:
    """What `profharness run` knows them by."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


def path_of(name: str) -> Path | None:
    """The scan file of that name, or None."""
    path = FOLDER / f"{name}.toml"
    return path if path.is_file() else None
