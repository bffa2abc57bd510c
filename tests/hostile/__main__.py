"""Give changed files and folders of every format to the command line, and judge each answer.

`python -m tests.hostile --tries 2000 --seed 1` runs tries 0 to 1999 of series 1, prints a table per
format, and ends with 1 where an answer was wrong. `--only-try N` repeats one.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from tests.hostile import series


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("--tries", type=int, default=2000)
    parser.add_argument("--from-try", type=int, default=0, help="the number of the first try")
    parser.add_argument("--only-try", type=int, action="append", help="this one alone; repeatable")
    parser.add_argument("--seed", type=int, default=1, help="the number of the series")
    parser.add_argument(
        "--format", action="append", default=[], help="this format alone; repeatable"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at once")
    parser.add_argument("--keep", type=Path, default=Path("build/mutations"), help="for wrong ones")
    given = parser.parse_args()
    numbers = given.only_try or range(given.from_try, given.from_try + given.tries)
    began = time.monotonic()
    found = series.run(numbers, given.seed, given.format, given.jobs, given.keep.resolve())
    print(series.table(found))
    print(f"series {given.seed}, {time.monotonic() - began:.0f} s")
    wrong = [one for one in found if one.faults]
    if wrong:
        print(
            f"\n{len(wrong)} wrong answers; their inputs lie in {given.keep}:\n{series.causes(found)}"
        )
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
