"""One target in a process of its own, as libFuzzer wants it: `python -m tests.fuzz.target NAME
FOLDER [options of libFuzzer]`. It ends with the first input that a reader answers wrongly.

An input becomes a file of the format's usual name, is read, and its figures are worked out. An
error of ours with a sentence is an answer; any other exception is none, and neither are figures
that no workload can have.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["profharness.readers", "profharness.rundir"]):
    from profharness import readers
    from profharness.understand import load as loading

from profharness.analysis.summarise import summarise_trace
from profharness.errors import ProfharnessError
from profharness.report.json import metrics_json
from tests.hostile.choosing import changed
from tests.hostile.judging import impossible
from tests.hostile.seeds import Kind

_OWN = 0.5
_LARGEST = 60_000


class Impossible(Exception):  # noqa: N818  named by what it says of the figures
    """Figures that no workload can have."""


def answer(path: Path) -> None:
    """Reads the file and works out its figures. Raises Impossible, and whatever is a fault of ours."""
    try:
        readers.find_reader(path)
        loaded = loading.load([path])
    except ProfharnessError:
        return
    found = impossible(json.loads(metrics_json(summarise_trace(loaded.trace, str(path)))))
    if found:
        raise Impossible("; ".join(found)[:500])


def mutator(kind: Kind, folder: Path) -> Callable[[bytes, int, int], bytes]:
    """Changes that know the format, and half of the time libFuzzer's own, which know the branches."""

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        rng = random.Random(seed)
        if rng.random() < _OWN:
            return changed(data, kind, rng, folder)[0][:most]
        return atheris.Mutate(data, most)

    return mutate


def main() -> None:
    name, kind, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    path = folder / name
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

    def one(data: bytes) -> None:
        path.write_bytes(data)
        answer(path)

    atheris.Setup(
        [sys.argv[0], *sys.argv[4:], f"-max_len={_LARGEST}"],
        one,
        custom_mutator=mutator(kind, folder),  # type: ignore[arg-type]  # one of the words of Kind
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main()
