"""Secrets of many kinds in containers of many kinds: how many `scrub` finds and removes, and that
what it cleans stays readable. `python -m tests.secrets.test_planted` prints the table.
"""

from __future__ import annotations

import gzip
import json
import random
import sqlite3
import sys
import tempfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace

from profharness.errors import InputError
from profharness.secrets import scrub as scrubbing
from tests.secrets.planted.containers import CONTAINERS
from tests.secrets.planted.kinds import KINDS, Kind

LEAST_SHARE = 0.95
SEED = 20261124


def everything(path: Path) -> str:
    """All that a file says, of which a planted value may be a part in another spelling."""
    raw = path.read_bytes()
    if raw.startswith(b"\x1f\x8b"):
        return gzip.decompress(raw).decode()
    if path.suffix == ".db":
        connection = sqlite3.connect(path)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        cells = [cell for row in connection.execute("SELECT * FROM anything") for cell in row]
        connection.close()
        plain = (
            gzip.decompress(one) if isinstance(one, bytes) and one[:2] == b"\x1f\x8b" else one
            for one in cells
        )
        return repr(list(plain)) + repr(raw)
    if path.suffix == ".parquet":
        return repr(pq.read_table(path).to_pylist()) + repr(raw)
    if path.suffix == ".pftrace":
        return str(Trace.FromString(raw)) + repr(raw)
    if path.suffix == ".json":
        return json.dumps(json.loads(raw))
    return raw.decode()


def is_removed(folder: Path, container: str, kind: Kind, value: str) -> bool:
    name, write = CONTAINERS[container]
    path = folder / name
    path.unlink(missing_ok=True)
    write(path, kind, value)
    secret = kind.secret(value)
    assert secret in everything(path) or container in ("JSON in JSON", "HTML"), (container, kind)
    try:
        scrubbing.scrub(path)
    except InputError:
        return False
    return secret not in everything(path)


def missed(folder: Path) -> dict[tuple[str, str], bool]:
    draw = random.Random(SEED)
    return {
        (kind.name, container): is_removed(folder, container, kind, kind.make(draw))
        for kind in KINDS
        for container in CONTAINERS
    }


def test_there_are_as_many_kinds_as_promised() -> None:
    assert len({kind.name for kind in KINDS}) == len(KINDS) >= 45
    assert len(CONTAINERS) >= 12


@pytest.mark.slow
def test_planted_secrets_are_removed(tmp_path: Path) -> None:
    table = missed(tmp_path)
    left = [place for place, removed in table.items() if not removed]
    assert len(left) <= (1 - LEAST_SHARE) * len(table), left


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        table = missed(Path(folder))
    for kind in KINDS:
        absent = [place for place in CONTAINERS if not table[kind.name, place]]
        found = len(CONTAINERS) - len(absent)
        print(f"{kind.name:28} {found:2}/{len(CONTAINERS)}  {', '.join(absent)}")
    total = sum(table.values())
    print(f"{total} of {len(table)} found: {100 * total / len(table):.1f} %")


if __name__ == "__main__":
    sys.exit(main())
