"""Ask two checkouts the same questions and compare their answers, byte for byte after placeholders.

    python benchmarks/compare_answers.py --old OLD_CHECKOUT --new NEW_CHECKOUT --work FOLDER

Used around a refactoring, which changes no answer. Both checkouts run as programs, so their modules
may move. The answers of the old one are kept in FOLDER under its commit: a second comparison asks
the new one alone. Paths of checkouts and of files in wrappers/, interpreters, pids, times and the
version are the same for both. Exit code 1 where an answer differs.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

from answers import lines, recorded, runs
from answers.comparing import Difference, Placeholders, compare
from answers.sides import Kept, Question, Side
from answers.stand_ins import StandIns

ROOT = Path(__file__).resolve().parent.parent
MATPLOTLIB = "svg.hashsalt: fixed\n"  # the same names in every figure


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--old", type=Path, required=True, help="checkout whose answers are right")
    parser.add_argument(
        "--new", type=Path, default=ROOT, help="checkout to compare (default: this one)"
    )
    parser.add_argument(
        "--shared",
        type=Path,
        default=ROOT.parent / "shared",
        help="folder with fixtures/ and tools/",
    )
    parser.add_argument(
        "--work", type=Path, required=True, help="folder for recorded runs and kept answers"
    )
    parser.add_argument(
        "--only", default="", metavar="PATTERN", help="regular expression that KIND/NAME must hold"
    )
    parser.add_argument("--jobs", type=int, default=2, help="questions at once (default 2)")
    parser.add_argument(
        "--json", type=Path, metavar="OUT", help="also write the result to this file"
    )
    parser.add_argument(
        "--old-python", type=Path, help="interpreter of the old side (default: its .venv)"
    )
    parser.add_argument(
        "--new-python", type=Path, help="interpreter of the new side (default: its .venv)"
    )
    parser.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="KIND",
        help="a kind whose differences are told but are no failure, such as help;"
        " wrappers: files in wrappers/ may have other names. Repeatable",
    )
    parser.add_argument("--list", action="store_true", help="print the questions; ask nothing")
    return parser.parse_args()


def side(checkout: Path, python: Path | None, place: Path) -> Side:
    checkout = checkout.absolute()
    chosen = python.absolute() if python else checkout / ".venv" / "bin" / "python"
    for path in (checkout / "profharness", chosen):
        if not path.exists():
            raise SystemExit(
                f"error: {path} does not exist\n  name a checkout, and its interpreter with"
                " --old-python or --new-python"
            )
    return Side(checkout, chosen, place)


def questions(asked: argparse.Namespace, old: Side, kept: Path) -> Iterator[Question]:
    """All of them, the cheap ones first. What lacks the shared files is left out, saying so."""
    stand_ins = StandIns(kept / "stand-ins", old)
    yield from lines.wrong()
    yield from lines.helps()
    yield from lines.plans(stand_ins)
    yield from lines.wraps(stand_ins)
    yield from lines.doctors(stand_ins)
    yield from lines.scan_files(asked.work / "scan-files")
    if (asked.shared / "fixtures").is_dir():
        shared = asked.shared.resolve()
        yield from recorded.generated(old, shared, asked.work / "generated")
        yield from recorded.fixtures(shared)
    else:
        print(
            f"{asked.shared}/fixtures is absent: recorded and generated files are left out",
            file=sys.stderr,
        )
    pattern = re.compile(asked.only)
    yield from runs.questions(
        runs.Recorder(old, kept / "runs", stand_ins), lambda title: bool(pattern.search(title))
    )


def version(one: Side) -> str:
    return one.run(("--version",), one.place, {}).stdout.strip().rpartition(" ")[2]


class Comparison:
    """Asks both sides, and counts by kind."""

    def __init__(self, old: Side, new: Side, kept: Kept, *, bare: bool) -> None:
        self.old, self.new, self.kept = old, new, kept
        self.places = Placeholders((old, new), (version(old), version(new)), bare=bare)

    def ask(self, question: Question) -> list[Difference]:
        before = self.kept.get(question)
        if before is None:
            before = self.old.ask(question)
            self.kept.put(question, before)
        return compare(question, before, self.new.ask(question), self.places)

    def all(self, asked: Iterable[Question], jobs: int) -> dict[str, dict[str, list[Difference]]]:
        """The differences by kind and question."""
        found: dict[str, dict[str, list[Difference]]] = {}
        listed = list(asked)
        began = time.monotonic()
        with ThreadPoolExecutor(jobs) as pool:
            for number, (question, differences) in enumerate(
                zip(listed, pool.map(self.ask, listed), strict=True), 1
            ):
                found.setdefault(question.kind, {})[question.name] = differences
                if differences:  # at once, for a comparison that is interrupted
                    print(f"{question.title} differs", file=sys.stderr, flush=True)
                if sys.stderr.isatty() or number % 100 == 0 or number == len(listed):
                    taken = time.monotonic() - began
                    print(f"{number} of {len(listed)} questions, {taken:.0f} s", file=sys.stderr)
        return found


def tell(found: dict[str, dict[str, list[Difference]]], allowed: list[str]) -> int:
    """Print every difference, then the table; returns the exit code."""
    for kind, by_name in found.items():
        for difference in (one for differences in by_name.values() for one in differences):
            mark = " (allowed)" if kind in allowed else ""
            print(f"{difference.title}: {difference.part} differs{mark}")
            print(f"  old {difference.old}\n  new {difference.new}")
    failed = False
    print(f"\n{'answers':<16}{'compared':>10}{'equal':>10}{'different':>11}")
    for kind, by_name in found.items():
        different = sum(bool(differences) for differences in by_name.values())
        failed = failed or (different > 0 and kind not in allowed)
        mark = "  (allowed)" if different and kind in allowed else ""
        print(f"{kind:<16}{len(by_name):>10}{len(by_name) - different:>10}{different:>11}{mark}")
    return int(failed)


def main() -> int:
    asked = arguments()
    asked.work = asked.work.absolute()
    place = asked.work / "place"
    place.mkdir(parents=True, exist_ok=True)
    (place / "matplotlibrc").write_text(MATPLOTLIB)
    old, new = side(asked.old, asked.old_python, place), side(asked.new, asked.new_python, place)
    kept = asked.work / old.commit
    chosen = [one for one in questions(asked, old, kept) if re.search(asked.only, one.title)]
    if asked.list:
        print("\n".join(one.title for one in chosen))
        return 0
    if not chosen:
        raise SystemExit(f"error: no question's name holds {asked.only}\n  --list names them all")
    comparison = Comparison(old, new, Kept(kept / "answers"), bare="wrappers" in asked.allow)
    found = comparison.all(chosen, asked.jobs)
    if asked.json:
        document = {
            kind: {
                name: [asdict(one) for one in differences] for name, differences in by_name.items()
            }
            for kind, by_name in found.items()
        }
        asked.json.write_text(json.dumps(document, indent=1) + "\n")
    return tell(found, asked.allow)


if __name__ == "__main__":
    sys.exit(main())
