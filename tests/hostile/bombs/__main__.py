"""Write each bomb, give it to the command line, and judge what the answer took.

`python -m tests.hostile.bombs` prints a table, and ends with 1 where an answer took more than it
may or was none. `--only kineto` takes the bombs whose names begin so; `--folder F` keeps what was
written.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from tests.hostile import children
from tests.hostile.bombs import catalogue, running


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.bombs", description=__doc__)
    parser.add_argument(
        "--only", action="append", default=[], help="bombs of this name; repeatable"
    )
    parser.add_argument("--command", default="", help="only command lines that begin so")
    parser.add_argument("--folder", type=Path, help="where bombs are written, and stay")
    parser.add_argument("--first", action="store_true", help="the first command of each alone")
    parser.add_argument("--seconds", type=float, default=children.MOST_SECONDS)
    parser.add_argument("--megabytes", type=float, default=children.MOST_MEMORY / (1 << 20))
    parser.add_argument("--scale", type=float, default=1.0, help="of the numbers in each bomb")
    parser.add_argument(
        "--forked", action="store_true", help="children of one process that has imported everything"
    )
    parser.add_argument("--patience", type=float, default=20, help="seconds until one is ended")
    given = parser.parse_args()
    bombs = catalogue.chosen(given.only, given.command)
    if given.first:
        bombs = tuple(replace(bomb, lines=bomb.lines[:1]) for bomb in bombs)
    if not bombs:
        parser.error(f"no bomb is named so; there are {', '.join(catalogue.names())}")
    bounds = running.Bounds(given.seconds, round(given.megabytes * (1 << 20)))
    wrong = 0
    warm = catalogue.chosen(catalogue.WARM)
    with tempfile.TemporaryDirectory(prefix="bombs-") as name:
        place = (given.folder or Path(name) / "bombs").resolve()
        run = running.forked(warm, Path(name)) if given.forked else running.Fresh(given.patience)
        print(running.HEAD, flush=True)
        for one in running.answers(bombs, place, given.scale, bounds, run):
            print(running.row(one), flush=True)
            wrong += bool(one.faults)
    print(f"{wrong} answers break the bounds" if wrong else "all within the bounds")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
