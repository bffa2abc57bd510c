"""A series of tries, spread over processes; what each came to; and the wrong ones kept, with their
inputs and with the commands that repeat them.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.hostile import children, judging
from tests.hostile.choosing import Chooser, Try
from tests.hostile.seeds import Seed, seeds

_MOST_KEPT = 4 << 20
_PLACE = re.compile(r'File "[^"]*/(profharness/[^"]+)", line (\d+), in (\w+)')
_WARM = (
    ("metrics", "--json"), ("metrics",), ("hotspots",), ("hotspots", "--by", "line"),
    ("hotspots", "--format", "json"), ("merge", "-o", "warm.pftrace"), ("validate",),
    ("saturation",), ("report",), ("compare",), ("ls",), ("scrub", "--dry-run"),
)  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """One command of one try: how it ended, and what is wrong with that."""

    number: int
    format: str
    seed: str
    changes: tuple[str, ...]
    line: tuple[str, ...]
    status: int
    seconds: float
    memory: int
    faults: tuple[str, ...]
    place: str = ""
    said: str = ""

    @property
    def cause(self) -> str:
        """The same for answers that are wrong in the same way, most often."""
        return self.place or re.sub(r"'[^']*'|-?\d[\d.e+-]*", "#", "; ".join(self.faults))[:160]


def run(
    numbers: Sequence[int], series: int, formats: Sequence[str], jobs: int, keep: Path
) -> list[Answer]:
    """The answers of these tries, by their numbers. Wrong ones lie in `keep` afterwards."""
    with tempfile.TemporaryDirectory(prefix="mutations-") as name:
        folder = Path(name)
        os.environ["PROFHARNESS_CACHE"] = str(folder / "cache")
        os.environ["TMPDIR"] = str(folder)
        (folder / "seeds").mkdir()
        found = seeds(folder / "seeds")
        children.import_all(tuple(_warm(found, folder)), folder)
        chooser = Chooser(found, series, formats)
        pids = []
        for part in range(jobs):
            pid = os.fork()
            if pid == 0:
                try:
                    _part(numbers[part::jobs], chooser, folder / f"part-{part}", keep)
                except BaseException:  # noqa: BLE001  told before the process ends without its parent's cleaning up
                    import traceback

                    traceback.print_exc()
                    os._exit(1)
                os._exit(0)
            pids.append(pid)
        failed = [pid for pid in pids if os.waitpid(pid, 0)[1]]
        if failed:
            raise RuntimeError("a process of the tests themselves failed: see above")
        return sorted(_read(folder.glob("part-*/answers")), key=lambda one: one.number)


def _warm(found: Sequence[Seed], folder: Path) -> Iterator[tuple[str, ...]]:
    """Each kind of input once, as it was, and each command."""
    once = {seed.format: seed for seed in found}
    for number, seed in enumerate(once.values()):
        path = folder / "warm" / str(number)
        for file in seed.files:
            target = path / (file.path if seed.is_folder else Path(file.path).name)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.data)
        given = path if seed.is_folder else path / Path(seed.files[0].path).name
        lines = _WARM if seed.use in ("run", "perfetto") else _WARM[:5]
        yield from ((line[0], str(given), *line[1:]) for line in lines)


def _part(numbers: Sequence[int], chooser: Chooser, folder: Path, keep: Path) -> None:
    folder.mkdir()
    with (folder / "answers").open("w", encoding="utf-8") as out:
        for done, number in enumerate(numbers):
            made = chooser.make(number, folder / "work")
            for answer in answers(made, folder / "work"):
                out.write(json.dumps(asdict(answer)) + "\n")
                if answer.faults:
                    kept(answer, made, keep)
            if done % 500 == 499:
                print(
                    f"  {done + 1} of {len(numbers)} tries of this process",
                    file=sys.stderr,
                    flush=True,
                )


def answers(made: Try, folder: Path) -> Iterator[Answer]:
    """Runs the commands of a try. Where one says that the program itself failed, it is run again for
    the place.
    """
    size = _size(made.path)
    for line in made.commands:
        ended = children.run(line, folder)
        wrong = judging.faults(line, ended, size)
        place = ""
        if any("itself failed" in fault or "Traceback" in fault for fault in wrong):
            again = (
                children.run(line, folder, traceback=True)
                if b"Traceback" not in ended.err
                else ended
            )
            place = place_of(again.err.decode(errors="replace"))
        yield Answer(
            made.number, made.format, made.seed, made.changes, line, ended.status, round(ended.seconds, 2),
            ended.memory, wrong, place, ended.err.decode(errors="replace")[:2000] if wrong else "",
        )  # fmt: skip


def place_of(traceback: str) -> str:
    """The innermost line of ours in a traceback, and the error."""
    found = _PLACE.findall(traceback)
    error = next(
        (one for one in reversed(traceback.splitlines()) if re.match(r"[\w.]+(:|$)", one)), ""
    )
    where = f"{found[-1][0]}:{found[-1][1]} {found[-1][2]}" if found else "outside of our code"
    return f"{where}: {error[:120]}"


def _size(path: Path) -> int:
    if path.is_file():
        return path.stat().st_size
    return sum(
        one.stat().st_size for one in path.rglob("*") if one.is_file() and not one.is_symlink()
    )


def kept(answer: Answer, made: Try, keep: Path) -> None:
    """The input of a wrong answer, and what repeats it."""
    folder = keep / f"{answer.number}-{answer.line[0]}"
    folder.mkdir(parents=True, exist_ok=True)
    given = folder / made.path.name
    if made.path.is_file() and made.path.stat().st_size <= _MOST_KEPT:
        shutil.copyfile(made.path, given)
    elif made.path.is_dir() and "sparse" not in " ".join(made.changes):
        shutil.rmtree(given, ignore_errors=True)
        _copy_folder(made.path, given)
    words = [str(given) if word == str(made.path) else word for word in answer.line]
    text = [
        shlex.join(("profharness", *words)),
        f"{answer.format} ({answer.seed}): {', '.join(answer.changes)}",
        *answer.faults,
        answer.place,
        answer.said,
    ]
    (folder / "wrong.txt").write_text("\n".join(text) + "\n", encoding="utf-8", errors="replace")


def _copy_folder(source: Path, target: Path) -> None:
    """Links and pipes as they are."""
    target.mkdir(parents=True, exist_ok=True)
    for path in source.iterdir():
        to = target / path.name
        if path.is_symlink():
            to.symlink_to(path.readlink())
        elif path.is_dir():
            _copy_folder(path, to)
        elif path.is_fifo():
            os.mkfifo(to)
        else:
            shutil.copyfile(path, to)


def _read(paths: Iterable[Path]) -> Iterator[Answer]:
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            for name in ("changes", "line", "faults"):
                row[name] = tuple(row[name])
            yield Answer(**row)


def table(found: Sequence[Answer]) -> str:
    """A row per format: answers that were figures, that said what is wrong with the input, and that
    were wrong themselves; the longest and largest of them.
    """
    rows = [
        f"{'format':24}{'tries':>8}{'answers':>9}{'exit 0':>8}{'exit 4':>8}{'wrong':>7}{'s':>7}{'MB':>6}"
    ]
    formats = sorted({one.format for one in found})
    for name in (*formats, ""):
        ones = [one for one in found if not name or one.format == name]
        if not ones:
            continue
        right = Counter(one.status for one in ones if not one.faults)
        rows.append(
            f"{name or 'all':24}{len({one.number for one in ones}):8}{len(ones):9}"
            f"{right[0] + right[1]:8}{right[4]:8}{sum(bool(one.faults) for one in ones):7}"
            f"{max(one.seconds for one in ones):7.1f}{max(one.memory for one in ones) >> 20:6}"
        )
    return "\n".join(rows)


def causes(found: Sequence[Answer]) -> str:
    """Wrong answers by cause, the most frequent first, each with an example."""
    wrong = [one for one in found if one.faults]
    lines = []
    for cause, count in Counter(one.cause for one in wrong).most_common():
        first = next(one for one in wrong if one.cause == cause)
        lines += [
            f"{count:5}  {cause}",
            (
                f"       try {first.number} ({first.format}, {first.seed}: {', '.join(first.changes)}): "
                f"{' '.join(first.line[:1])}: {'; '.join(first.faults)[:300]}"
            ),
        ]
    return "\n".join(lines)
