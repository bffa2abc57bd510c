"""Damaged Kineto traces through our reader and others: `python benchmarks/damaged_inputs.py --files
300 --peer TraceLens=PYTHON --peer HTA=PYTHON`, where PYTHON is the interpreter of an environment in
which that library is installed (`python -m venv E; E/bin/pip install TraceLens`, or
HolisticTraceAnalysis).

The files are those of `make mutations` (series --seed, format kineto): the same for all. Each is
read in a forked child with the library imported already. An answer is refused cleanly where the
error names the file; any other exception is one that a user must understand from the traceback.
Figures are impossible where they are negative, not finite, or busy for longer than from the first
start to the last end. `not ours` counts answers that give another busy time than our reader, by
more than the microsecond at each end of each record that HTA rounds away.
`script` is what a short script with json and pandas would do. `--keep` writes the figures with the
machine's description to benchmarks/results/.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import description  # noqa: E402  beside this file
from damaged.reading import MEMORY, SECONDS  # noqa: E402  beside this file

from tests.hostile.choosing import Chooser  # noqa: E402  the tests of this checkout
from tests.hostile.seeds import seeds  # noqa: E402  the path to this checkout comes first

READING = Path(__file__).resolve().parent / "damaged" / "reading.py"
COLUMNS = ("answered", "refused", "exception", "over 5 s", "over 500 MB", "impossible", "not ours")


def make(folder: Path, files: int, series: int) -> list[Path]:
    """The changed files, each under the name of its number."""
    (folder / "seeds").mkdir()
    chooser = Chooser(seeds(folder / "seeds"), series, ["kineto"])
    made = []
    for number in range(files):
        given = chooser.make(number, folder / "work").path
        path = folder / f"{number}{'.json.gz' if given.name.endswith('.gz') else '.json'}"
        given.rename(path)
        made.append(path)
    return made


def impossible(figures: dict[str, float]) -> bool:
    busy, span = figures["busy_us"], figures["span_us"]
    return not (math.isfinite(busy) and math.isfinite(span) and 0 <= busy <= span * 1.001 + 1) and (
        busy != 0 or span != 0
    )


def outcome(row: dict[str, Any]) -> str:
    """One of the columns for one file."""
    if row["memory"] > MEMORY:
        return "over 500 MB"
    if row["seconds"] > SECONDS:
        return "over 5 s"
    if "error" in row:
        return "refused" if row["clean"] else "exception"
    return "impossible" if impossible(row["figures"]) else "answered"


def busy(row: dict[str, Any]) -> float | None:
    """µs of a file that was answered with possible figures, to a tenth."""
    return round(row["figures"]["busy_us"], 1) if outcome(row) == "answered" else None


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=PYTHON")
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args()
    readers = {"profharness": sys.executable, "script": sys.executable}
    readers |= dict(one.split("=", 1) for one in given.peer)
    with tempfile.TemporaryDirectory() as name:
        paths = [str(path) for path in make(Path(name), given.files, given.seed)]
        rows: dict[str, list[dict[str, Any]]] = {}
        for reader, python in readers.items():
            done = subprocess.run(
                [python, str(READING), reader, *paths],
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            rows[reader] = [json.loads(line) for line in done.stdout.splitlines()]
    ours = [busy(row) for row in rows["profharness"]]
    rounding = [2.0 * row.get("figures", {}).get("records", 0) for row in rows["profharness"]]
    table: dict[str, dict[str, int]] = {}
    print(f"{given.files} files\n{'':14}" + "".join(f"{column:>12}" for column in COLUMNS))
    for reader, ones in rows.items():
        table[reader] = {column: sum(outcome(row) == column for row in ones) for column in COLUMNS}
        others = [
            number
            for number, (row, own) in enumerate(zip(ones, ours, strict=True))
            if own is not None and (told := busy(row)) is not None
            and abs(told - own) > 1e-3 * max(abs(own), 1.0) + rounding[number]
        ]  # fmt: skip
        table[reader]["not ours"] = len(others)
        print(f"{reader:14}" + "".join(f"{table[reader][column]:12}" for column in COLUMNS))
        for number in others[:5]:
            print(f"    file {number}: {busy(ones[number])} µs, ours {ours[number]} µs")
    if given.keep:
        described = description.machine(("profharness", "pandas"))
        result = {"machine": described, "files": given.files, "seed": given.seed, "readers": table}
        print(description.keep("damaged-inputs", result))


if __name__ == "__main__":
    main()
