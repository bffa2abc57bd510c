"""`python -m tests.faults [--tries N] [--seed N] [ROW ...]`: strike until N live victims of every
row were hit, and print what each fault cost. Status 1 where it cost anything.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.faults.table import ROWS, rows_named, struck, text_of


def main() -> int:
    """The table on stdout, progress and each fault's sentence on stderr."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--tries", type=int, default=3, help="live victims of each row")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("rows", nargs="*", metavar="ROW", help=", ".join(row.name for row in ROWS))
    asked = parser.parse_args()
    counted = []
    for row in rows_named(asked.rows):
        with tempfile.TemporaryDirectory(prefix="profharness-faults-") as place:
            counted.append(struck(row, asked.tries, asked.seed, Path(place), _say))
        print(text_of(counted[-1:]).splitlines()[-1], file=sys.stderr)
    print(text_of(counted))
    return int(any(one.cost for one in counted))


def _say(sentence: str) -> None:
    print(f"  {sentence}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
