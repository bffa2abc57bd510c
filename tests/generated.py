"""Traces from the shared generator, with the truth that it computes beside them."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import shared_path

GENERATOR = shared_path("tools/gen_kineto.py")


@dataclass(frozen=True)
class Generated:
    path: Path
    truth: dict[str, Any]

    @property
    def totals(self) -> dict[str, tuple[int, int]]:
        """Calls and total ns by kernel name; copies are in the truth too and are left out."""
        return {
            row["name"]: (row["count"], row["total_ns"])
            for row in self.truth["by_name"]
            if not row["name"].startswith("Mem")
        }


def generate(folder: Path, name: str, kernels: int, *options: str) -> Generated:
    if not GENERATOR.is_file():
        pytest.skip(f"needs the shared generator ({GENERATOR} is absent)")
    path, truth = folder / name, folder / f"{name}.truth"
    subprocess.run(
        [
            sys.executable,
            str(GENERATOR),
            "--kernels",
            str(kernels),
            "-o",
            str(path),
            "--truth",
            str(truth),
            *options,
        ],
        check=True,
        capture_output=True,
    )
    return Generated(path, json.loads(truth.read_text()))
