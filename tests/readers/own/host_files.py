"""Writes records of Python's work as the hooks do, for tests."""

from __future__ import annotations

import json
from pathlib import Path

HEAD = {"v": 1, "clock": "boottime", "pass_name": "torch"}


def write(path: Path, *lines: object) -> Path:
    """A file of these lines, each an object or a text that stands as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("".join(f"{text}\n" for text in texts))
    return path


STACKS = (
    {"file": [0, "/home/me/train.py"]},
    {"frame": [0, 0, 40, "<module>"]},
    {"frame": [1, 0, 7, "step"]},
    {"stack": [0, -1, 0]},
    {"stack": [1, 0, 1]},
)
