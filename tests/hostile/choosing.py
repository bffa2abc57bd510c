"""What one try is: a seed, one to three changes of it, and the commands that are asked about it, all
of it drawn from the number of the try.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.hostile import databases, folders, json_texts, lines, messages, packed, raw, tables
from tests.hostile.seeds import File, Kind, Seed

_RAW = 0.15
_FOLDERS_OWN = 0.35
_PACKED = 0.1
_MORE = 0.25
_CHANGES = {"json": json_texts.change, "csv": tables.change, "lines": lines.change,
            "protobuf": messages.change, "bytes": raw.change}  # fmt: skip
# a folder's central file is hit more often than the others
_CENTRAL = ("manifest.json", "sysinfo.csv", "pmc_perf.csv")
_WEIGHTS = {
    "kineto": 3,
    "rocpd": 3,
    "run folder": 4,
    "rocprofv3 JSON": 2,
    "rocprofv3 CSV": 2,
    "perfetto": 3,
}
"""How often a format is tried, where the others are tried once: those with most in them."""
_BY = ("kernel", "op", "category", "call", "shape", "module", "range", "stack")


@dataclass(frozen=True)
class Try:
    """The changed input at `path`, what was changed, and the command lines about it."""

    number: int
    format: str
    seed: str
    changes: tuple[str, ...]
    path: Path
    commands: tuple[tuple[str, ...], ...]


class Chooser:
    """Makes the tries of one series. `only` are formats; none for all."""

    def __init__(self, seeds: Sequence[Seed], series: int, only: Sequence[str] = ()) -> None:
        self.series = series
        self.by_format: dict[str, list[Seed]] = {}
        for seed in seeds:
            if not only or seed.format in only:
                self.by_format.setdefault(seed.format, []).append(seed)

    def make(self, number: int, folder: Path) -> Try:
        """The try of that number, with its input in `folder`, which is emptied before."""
        rng = random.Random(f"{self.series} {number}")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        formats = sorted(self.by_format)
        weights = [_WEIGHTS.get(form, 1) for form in formats]
        seed = rng.choice(self.by_format[rng.choices(formats, weights)[0]])
        times = rng.choice((1, 1, 1, 2, 3))
        if seed.is_folder:
            path = folder / "given"
            changes = _folder(seed, times, path, rng)
        else:
            path = folder / seed.files[0].path.rpartition("/")[2].replace(" ", "-")
            data, changes = _file(seed.files[0], times, folder, rng)
            path.write_bytes(data)
        return Try(number, seed.format, seed.name, changes, path, _commands(seed, path, rng))


def changed(data: bytes, kind: Kind, rng: random.Random, folder: Path) -> tuple[bytes, str]:
    """The bytes with one change that suits their kind, or any other."""
    if rng.random() < _RAW:
        return raw.change(data, rng)
    if kind == "sqlite":
        return databases.change(data, rng, folder)
    return _CHANGES[kind](data, rng)


def _file(
    file: File, times: int, folder: Path, rng: random.Random
) -> tuple[bytes, tuple[str, ...]]:
    """A file's content, changed so many times, packed as it was or anew."""
    data, names = file.data, []
    pack = file.packed or rng.random() < _PACKED
    last = pack and rng.random() < 0.2
    for _ in range(times - int(last)):
        data, name = changed(data, file.kind, rng, folder)
        names.append(name)
    if last:
        data, name = packed.change(data, rng)
        names.append(name)
    elif pack:
        data = packed.pack(data)
    return data, tuple(names)


def _folder(seed: Seed, times: int, path: Path, rng: random.Random) -> tuple[str, ...]:
    for file in seed.files:
        target = path / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(packed.pack(file.data) if file.packed else file.data)
    names = []
    central = [file for file in seed.files if file.path in _CENTRAL]
    for _ in range(times):
        if rng.random() < _FOLDERS_OWN:
            names.append(folders.change(path, rng))
            continue
        file = rng.choice(central if central and rng.random() < 0.5 else seed.files)
        target = path / file.path
        if folders.is_own(target):
            data, inside = _file(file, 1, path.parent, rng)
            target.write_bytes(data)
            names.append(f"{file.path}: {', '.join(inside)}")
    return tuple(names)


def _commands(seed: Seed, path: Path, rng: random.Random) -> tuple[tuple[str, ...], ...]:
    """The figures as JSON, where the input has them, and of every fourth one more command."""
    given = str(path)
    figures = ("metrics", "--json", given)
    others: list[tuple[str, ...]] = [
        ("hotspots", "--format", "json", given),
        ("hotspots", "--format", "json", "--by", rng.choice(_BY), given),
        ("metrics", given),
        ("hotspots", given),
        ("merge", given, "-o", "out-of-merge.pftrace"),
    ]
    if seed.use == "scan":
        return ("saturation", "--json", given), rng.choice(
            (("saturation", given), ("saturation", given, "--jobs", "7", "--latency-limit", "20"))
        )
    if seed.use == "code":
        by = rng.choice(("line", "instruction"))
        return figures, ("hotspots", "--format", "json", "--by", by, given)
    if seed.use == "perfetto":
        others += [("validate", given), ("validate", "--json", given)] * 2
    if seed.use == "run":
        others += [
            ("report", given, "--json"),
            ("report", given),
            ("ls", str(path.parent)),
            ("saturation", given),
            ("compare", given, given),
            ("metrics", "--steps", "all", "--json", given),
            ("scrub", "--dry-run", given),
        ] * 2
    return (figures, rng.choice(others)) if rng.random() < _MORE else (figures,)
