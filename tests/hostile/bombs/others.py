"""Bombs for commands that look at anything: `ls` on hostile runs, `scrub` on texts and databases,
models of a Triton repository.
"""

from __future__ import annotations

import sqlite3
from functools import partial
from pathlib import Path

from tests.hostile.bombs.bomb import Bomb, lines, pack, pack_file, plain, scaled

_MANIFEST = (
    '{{"schema":1,"id":"r{0}","created":"2026-01-02T03:04:05Z","profharness":"0","kind":"scan",'
    '"argv":["profharness","run"],"state":"running","scan":{{"name":"batch"}},{1}}}\n'
)


def runs(folder: Path, scale: float, *, count: int, points: int) -> Path:
    """A folder of runs with many points each."""
    listed = ",".join(
        f'{{"id":"b{n}","pass_name":"p{n % 900}","batch_size":{n + 1}}}' for n in range(points)
    )
    below = folder / "runs"
    for number in range(scaled(count, scale)):
        run = below / f"r{number}"
        run.mkdir(parents=True)
        (run / "manifest.json").write_text(_MANIFEST.format(number, f'"points":[{listed}]'))
    return below


def folders(folder: Path, scale: float, *, wide: int, depth: int) -> Path:
    """Folders inside of folders, none of which is a run."""
    below = folder / "runs"
    for number in range(scaled(wide, scale)):
        place = below / f"a{number}"
        for level in range(depth):
            place = place / f"d{level}"
        place.mkdir(parents=True)
        (place / "manifest.json").write_text("{}")
    return below


def line(folder: Path, scale: float, *, text: str, count: int, name: str, packed: bool) -> Path:
    """A text that is repeated in one line."""
    parts = (text for _ in range(scaled(count, scale)))
    return pack(folder / f"{name}.gz", parts) if packed else plain(folder / name, parts)


def cells(folder: Path, scale: float, *, count: int, text: str) -> Path:
    """A database of so many texts."""
    path = folder / "x.db"
    database = sqlite3.connect(path)
    with database:
        database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, b TEXT)")
        database.executemany(
            "INSERT INTO t (a, b) VALUES (?, ?)",
            ((text.format(n), text.format(n)) for n in range(scaled(count, scale) // 2 + 1)),
        )
    database.close()
    return pack_file(path)


def parquet(folder: Path, scale: float, *, count: int) -> Path:
    """A Parquet file of one text, so many times."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"a": pa.array(["HF_TOKEN=hf_" + "a" * 34] * scaled(count, scale))})
    pq.write_table(table, folder / "x.parquet")
    return folder / "x.parquet"


def model(folder: Path, scale: float, *, text: str, count: int) -> Path:
    """A model of a Triton repository whose configuration is hostile."""
    place = folder / "model"
    (place / "1").mkdir(parents=True)
    (place / "1" / "model.onnx").write_bytes(b"")
    (place / "config.pbtxt").write_text(
        'name: "m"\nbackend: "onnxruntime"\n' + text * scaled(count, scale)
    )
    return place


def versions(folder: Path, scale: float, *, count: int) -> Path:
    """A model of thousands of versions, none of which holds a model."""
    place = folder / "model"
    for number in range(1, scaled(count, scale) + 1):
        (place / str(number)).mkdir(parents=True)
    (place / "config.pbtxt").write_text('name: "m"\nbackend: "onnxruntime"\n')
    return place


_SCRUB = ("scrub",)
_DRY = ("run --model {} --dry-run",)
BOMBS = (
    Bomb("ls 1,000 runs", partial(runs, count=1_000, points=100), lines("ls")),
    Bomb("ls 30 runs of 20,000 points", partial(runs, count=30, points=5_000), lines("ls")),
    Bomb("ls 20,000 folders", partial(folders, wide=4_000, depth=5), lines("ls")),
    Bomb(
        "scrub a line of letters",
        partial(line, text="a", count=6_000_000, name="x.txt", packed=False),
        lines(*_SCRUB),
    ),
    Bomb(
        "scrub a line of letters gzipped",
        partial(line, text="a", count=60_000_000, name="x.txt", packed=True),
        lines(*_SCRUB),
    ),
    Bomb(
        "scrub a line of equal signs",
        partial(line, text="TOKEN=", count=1_000_000, name="x.txt", packed=False),
        lines(*_SCRUB),
    ),
    Bomb(
        "scrub a line of options",
        partial(line, text="--password ", count=550_000, name="x.txt", packed=False),
        lines(*_SCRUB),
    ),
    Bomb(
        "scrub a line of quotes",
        partial(line, text='\\"', count=3_000_000, name="x.json", packed=False),
        lines(*_SCRUB),
    ),
    Bomb(
        "scrub brackets",
        partial(line, text="[", count=6_000_000, name="x.json", packed=False),
        lines(*_SCRUB),
    ),
    Bomb(
        "scrub a line of keys",
        partial(line, text='"AWS_SECRET_ACCESS_KEY":"', count=240_000, name="x.json", packed=False),
        lines(*_SCRUB),
    ),
    Bomb(
        "scrub begins of private keys",
        partial(
            line, text="-----BEGIN PRIVATE KEY-----", count=220_000, name="x.txt", packed=False
        ),
        lines(*_SCRUB),
    ),
    Bomb(
        "scrub addresses",
        partial(line, text="http://a:", count=660_000, name="x.txt", packed=False),
        lines(*_SCRUB),
    ),
    Bomb(
        "scrub words of dots",
        partial(line, text="eyJhb.eyJ", count=660_000, name="x.txt", packed=False),
        lines(*_SCRUB),
    ),
    Bomb(
        "scrub commas",
        partial(line, text='a,"', count=2_000_000, name="x.csv", packed=False),
        lines(*_SCRUB),
    ),
    Bomb("scrub 1 M cells", partial(cells, count=1_000_000, text="a{}"), lines(*_SCRUB)),
    Bomb(
        "scrub 300,000 secrets", partial(cells, count=300_000, text="HF_TOKEN={}x"), lines(*_SCRUB)
    ),
    Bomb("scrub Parquet", partial(parquet, count=4_000_000), lines(*_SCRUB)),
    Bomb(
        "model inputs",
        partial(model, text='input { name: "x" dims: [1,2] }\n', count=180_000),
        lines(*_DRY),
    ),
    Bomb("model dims", partial(model, text="input { dims: 1 }\n", count=300_000), lines(*_DRY)),
    Bomb("model unknown fields", partial(model, text="a [", count=2_000_000), lines(*_DRY)),
    Bomb("model nested", partial(model, text="a {", count=2_000_000), lines(*_DRY)),
    Bomb("model quotes", partial(model, text="\"\\'", count=2_000_000), lines(*_DRY)),
    Bomb("model versions", partial(versions, count=20_000), lines(*_DRY)),
)
