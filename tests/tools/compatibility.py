"""Other versions of Python and of the libraries: `python tests/tools/compatibility.py [NAME ...]`.

Each combination gets a virtual environment below build/compatibility/ and runs the quick tests of
reading, writing and reporting there, which need no framework. A combination whose interpreter is
not on this machine, or whose packages cannot be installed, is told with its reason and is no
failure; failing tests are. The hooks under old interpreters are tests/wrappers/test_old_pythons.py.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests import old_pythons  # noqa: E402  the folder above was just added

FOLDER = ROOT / "build" / "compatibility"
TOOLS = ("pytest>=8,<9.2", "pytest-xdist>=3.5", "hypothesis>=6.100", "scipy>=1.11")
TESTS = ("tests/writers", "tests/report", "tests/rundir", "tests/cli", "tests/understand")
QUICK = "not slow and not statistics and not thorough and not alone"


@dataclass(frozen=True)
class Combination:
    """One interpreter with one set of libraries; `lowest` takes the oldest that are allowed."""

    name: str
    python: str
    pins: tuple[str, ...] = ()
    lowest: bool = False

    def requirements(self) -> tuple[str, ...]:
        """What pip is asked for."""
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        wanted = (*project["dependencies"], *project["optional-dependencies"]["plots"])
        if self.lowest:
            wanted = tuple(one.split(",")[0].replace(">=", "==") for one in wanted)
        return (*wanted, *self.pins, *TOOLS)


COMBINATIONS = (
    Combination("lowest", "3.11", lowest=True),
    Combination("numpy1-pandas2", "3.12", ("numpy<2", "pandas<3", "pyarrow<26")),
    Combination("numpy2-pandas3", "3.13", ("numpy>=2", "pandas>=3")),
    Combination("newest", "3.14"),
)


def tried(one: Combination) -> tuple[str, bool]:
    """What came of a combination, in words, and whether its tests failed."""
    base = old_pythons.found(one.python)
    if not base:
        return f"not tried: no Python {one.python} here", False
    python = FOLDER / one.name / "bin" / "python"
    steps = (
        (base, "-m", "venv", "--clear", str(python.parents[1])),
        (str(python), "-m", "pip", "install", "-q", "--no-compile", *one.requirements()),
    )
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        if done.returncode:
            said = done.stderr.strip().splitlines() or ["no reason was given"]
            return f"not tried: {said[-1]}", False
    words = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--hypothesis-profile=quick")
    ran = subprocess.run(
        [python, *words, "-m", QUICK, *TESTS],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},  # of the programs that tests start, too
        check=False,
    )
    return (
        ("passed", False) if ran.returncode == 0 else (f"pytest ended with {ran.returncode}", True)
    )


def main(names: list[str]) -> int:
    """Try the combinations of these names, or all; 1 where tests failed."""
    answers = {}
    for one in COMBINATIONS:
        if not names or one.name in names:
            print(f"== {one.name}: Python {one.python}", flush=True)
            answers[one.name] = tried(one)
    for name, (said, _) in answers.items():
        print(f"{name:<16} {said}")
    return int(any(failed for _, failed in answers.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
