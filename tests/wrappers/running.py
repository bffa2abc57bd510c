"""Run small programs with and without the hooks, as real processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

WRAPPERS = Path(__file__).resolve().parents[2] / "wrappers"
CLEAN = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith("PROFHARNESS_")
    and name not in ("PYTHONPATH", "RANK", "SLURM_PROCID", "PYTHONFAULTHANDLER")
}


@dataclass
class Ran:
    """One finished program and what the hooks left."""

    status: int
    out: str
    err: str
    folder: Path
    pid: int = 0
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def hellos(self) -> list[dict[str, Any]]:
        return [
            json.loads(path.read_text())
            for path in sorted((self.folder / "hooks").glob("hello-*.json"))
        ]

    @property
    def hello(self) -> dict[str, Any]:
        (found,) = self.hellos
        return found

    def files(self, layer: str) -> list[Path]:
        """The tool's files of one layer, without sidecars."""
        return sorted(
            path
            for path in (self.folder / "artifacts" / layer).rglob("*")
            if path.is_file() and not path.name.endswith(".profharness.json")
        )

    def steps(self) -> list[dict[str, Any]]:
        return [
            json.loads(line)
            for path in self.files("steps")
            for line in path.read_text().splitlines()
        ]


def sidecar_of(path: Path) -> dict[str, Any]:
    return json.loads(path.with_name(path.name + ".profharness.json").read_text())


class Runner:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def environment(self, **variables: str) -> dict[str, str]:
        return {
            **CLEAN,
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": f"{WRAPPERS / 'hooks'}:{WRAPPERS}",
            "PROFHARNESS_HOOKS_DIR": str(self.folder / "hooks"),
            "PROFHARNESS_ARTIFACTS": str(self.folder / "artifacts"),
            "PROFHARNESS_WORKER": "0",
            **variables,
        }

    def script(self, text: str, name: str = "program.py") -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def run(
        self, *argv: str | Path, hooked: bool = True, cwd: Path | None = None, **variables: str
    ) -> Ran:
        env = (
            self.environment(**variables)
            if hooked
            else {**CLEAN, "OMP_NUM_THREADS": "1", **variables}
        )
        with subprocess.Popen(
            [sys.executable, *map(str, argv)],
            env=env,
            cwd=cwd or self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            out, err = process.communicate(timeout=280)
        return Ran(process.returncode, out, err, self.folder, process.pid)

    def both(self, *argv: str | Path, **variables: str) -> tuple[Ran, Ran]:
        """With the hooks, then plain."""
        hooked = self.run(*argv, **variables)
        own = {
            name: value for name, value in variables.items() if not name.startswith("PROFHARNESS_")
        }
        if "PYTHONPATH" in own:
            own["PYTHONPATH"] = own["PYTHONPATH"].removeprefix(f"{WRAPPERS / 'hooks'}:{WRAPPERS}:")
        return hooked, self.run(*argv, hooked=False, **own)


def hooks_path(*more: Path) -> str:
    return ":".join(map(str, (WRAPPERS / "hooks", WRAPPERS, *more)))
