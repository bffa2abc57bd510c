"""Fuzz every reader for an equal share of the time: `python -m tests.fuzz --seconds 30`, or one for
as long as you like with --target; with --inputs the same number of inputs of each, which are the
same each time. Ends with 1 where an input was answered wrongly; it lies in --keep,
and `profharness metrics FILE` repeats it.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import ROOT
from tests.fuzz.targets import TARGETS, Target, write_corpora

_START = 120
_MEMORY_MB = 2048
_SECONDS_OF_AN_INPUT = 20


def main() -> int:
    if importlib.util.find_spec("atheris") is None:
        print("nothing is fuzzed: atheris is not installed here (extra `fuzz`)", file=sys.stderr)
        return 0
    names = [one.name for one in TARGETS]
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=int, default=30, help="of each of the --jobs together")
    parser.add_argument(
        "--inputs", type=int, default=0, help="of each target, however long it takes"
    )
    parser.add_argument("--target", action="append", default=[], choices=names)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="targets at once")
    parser.add_argument("--keep", type=Path, default=Path("build/fuzz"))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as name:
        corpora = write_corpora(Path(name))
        wanted = [
            one for one in TARGETS if one.name in (given.target or names) and one.name in corpora
        ]
        jobs = min(given.jobs, len(wanted))
        seconds = max(1, given.seconds * jobs // len(wanted))

        def fuzzed(target: Target) -> int:
            much = Much(seconds, given.inputs, given.seed)
            return fuzz(target, corpora[target.name], given.keep.resolve(), much)

        with ThreadPoolExecutor(jobs) as pool:
            statuses = list(pool.map(fuzzed, wanted))
    return int(any(statuses))


@dataclass(frozen=True)
class Much:
    """How long to fuzz one target: so many seconds, or `inputs` where that is not 0."""

    seconds: int
    inputs: int
    seed: int

    @property
    def bound(self) -> str:
        return f"-runs={self.inputs}" if self.inputs else f"-max_total_time={self.seconds}"


def fuzz(target: Target, corpus: Path, keep: Path, much: Much) -> int:
    """Fuzzes one target; its exit status."""
    keep = keep / target.name
    work = corpus.parent / "work"
    for folder in (keep, work):
        folder.mkdir(parents=True, exist_ok=True)
    line = [
        sys.executable, "-m", "tests.fuzz.target", target.file_name,
        (corpus.parent / "kind").read_text(), str(work), str(corpus), much.bound,
        f"-seed={much.seed}", f"-rss_limit_mb={_MEMORY_MB}", f"-timeout={_SECONDS_OF_AN_INPUT}",
        f"-artifact_prefix={keep}/",
    ]  # fmt: skip
    done = subprocess.run(
        line, cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": "0"}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False,
        timeout=much.seconds + _START + much.inputs,
    )  # fmt: skip
    print(told(target.name, done.returncode, done.stdout), flush=True)
    return done.returncode


def told(name: str, status: int, said: str) -> str:
    """A line per target: how many inputs were tried, and what was wrong with the last one."""
    tried = re.findall(r"^#(\d+)", said, re.MULTILINE)
    shown = f"{name:18}{tried[-1] if tried else 0:>9} inputs"
    if status == 0:
        return shown
    error = re.search(r"=== Uncaught Python exception: ===\n(.+)", said)
    place = re.findall(r'File "[^"]*/(profharness/[^"]+", line \d+)', said)
    kept = re.search(r"Test unit written to (\S+)", said)
    lines = [shown, f"  wrong: {error.group(1) if error else said.strip()[-500:]}"]
    lines += [f"  at {place[-1]}"] if place else []
    lines += [f"  input: {kept.group(1)}"] if kept else []
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
