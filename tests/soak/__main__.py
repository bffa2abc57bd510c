"""`python -m tests.soak [--minutes M] [--scale S] [PART ...]`: one row per part, status 1 where
something was lost or grew.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.soak import parts
from tests.soak.row import HEAD, Row

PARTS: dict[str, Callable[[Path, float, float], Row]] = {
    "telemetry": lambda place, minutes, _: parts.telemetry(place, seconds=60 * minutes),
    "points": lambda place, _, scale: parts.points(place, count=max(round(2000 * scale), 10)),
    "requests": lambda place, _, scale: parts.requests(place, count=round(100_000 * scale)),
    "runs": lambda place, _, scale: parts.runs(place, count=max(round(1000 * scale), 10)),
}


def main(given: list[str]) -> int:
    """The table on stdout, what is wrong on stderr."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60, help="of telemetry")
    parser.add_argument("--scale", type=float, default=1, help="of all that is counted")
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    asked = parser.parse_args(given)
    if unknown := set(asked.parts) - PARTS.keys():
        parser.error(f"no part is named {', '.join(sorted(unknown))}")
    print(HEAD, flush=True)
    wrong = 0
    for name in asked.parts or PARTS:
        with tempfile.TemporaryDirectory(prefix="profharness-soak-") as place:
            row = PARTS[name](Path(place), asked.minutes, asked.scale)
        print(row.line(), flush=True)
        for fault in row.faults:
            print(f"  {row.what}: {fault}", file=sys.stderr)
        wrong += row.lost + len(row.faults)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
