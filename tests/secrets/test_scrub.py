"""Secrets in files that tools left: found, told by name, and removed without a change to anything
else.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import sqlite3
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from profharness import readers
from profharness.errors import InputError
from profharness.rundir.manifest import Artifact
from profharness.rundir.paths import MANIFEST
from profharness.secrets import database
from profharness.secrets import scrub as scrubbing
from profharness.secrets.names import MARKER
from profharness.understand import report_run as understand
from tests import started
from tests.fakes.rocpd_files import write_rocpd
from tests.fakes.rocprofv3_program import Call, program
from tests.readers.rocprofv3.tables_spelled import spelled
from tests.runs.test_amd_runs import Node

TOKEN = "hf_" + "Qx7z" * 9
PASSWORD = 'pa"ss\\word'
ENVIRONMENT = {
    "HF_TOKEN": TOKEN,
    "PATH": "/usr/bin",
    "DB_PASSWORD": PASSWORD,
    "AUTHOR": "somebody",
    "LANG": "C",
}
CLEAN = ENVIRONMENT | {"HF_TOKEN": MARKER, "DB_PASSWORD": MARKER}


def profharness(*words: str) -> subprocess.CompletedProcess[str]:
    return started.run(*words)


def environments(path: Path) -> list[dict[str, str]]:
    connection = sqlite3.connect(path)
    try:
        return [
            json.loads(text)
            for (text,) in connection.execute("SELECT environment FROM rocpd_info_process")
        ]
    finally:
        connection.close()


def with_log(path: Path, folder: Path) -> Path:
    """The database as a killed writer leaves it: a table stands only in the write-ahead log beside
    it.
    """
    folder.mkdir()
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("CREATE TABLE later AS SELECT 1 AS x")
    for file in (path, path.with_name(f"{path.name}-wal")):
        shutil.copy(file, folder / file.name)
    writer.close()
    assert (folder / f"{path.name}-wal").stat().st_size
    return folder / path.name


def kineto(path: Path) -> Path:
    """A trace with the environment as a JSON string in its metadata, kernels, and names with
    `token` in them.
    """
    events = [
        {
            "ph": "X",
            "cat": "kernel",
            "name": "moe_align_token_kernel<int>",
            "pid": 0,
            "tid": 7,
            "ts": 1000.5 + 10 * i,
            "dur": 3.25,
            "args": {
                "device": 0,
                "stream": 7,
                "correlation": i,
                "grid": [i + 1, 1, 1],
                "block": [64, 1, 1],
            },
        }
        for i in range(3000)
    ]
    text = json.dumps(
        {
            "schemaVersion": 1,
            "hip_runtime_version": 60400000,
            "environment": json.dumps(ENVIRONMENT),
            "traceEvents": events,
        },
        indent=1,
    )
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.mark.slow
@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_a_database_loses_its_secrets_and_nothing_else(tmp_path: Path, journal: str) -> None:
    path = write_rocpd(
        tmp_path / "4711_results.db", program(1), program(2, pid=4712), environment=ENVIRONMENT
    )
    if journal == "wal":
        path = with_log(path, tmp_path / "killed")
    before = spelled(readers.read(path))
    assert scrubbing.scan(path) == {"HF_TOKEN": 2, "DB_PASSWORD": 2}
    assert scrubbing.scrub(path) == {"HF_TOKEN": 2, "DB_PASSWORD": 2}
    assert environments(path) == [CLEAN, CLEAN]
    if journal == "wal":
        assert sqlite3.connect(path).execute("SELECT x FROM later").fetchall() == [(1,)]
    assert spelled(readers.read(path)) == before
    for file in path.parent.glob("*.db*"):
        assert TOKEN.encode() not in file.read_bytes()
        assert b"ss\\\\word" not in file.read_bytes()
    kept = path.read_bytes()
    assert scrubbing.scrub(path) == {}
    assert path.read_bytes() == kept


def test_a_compressed_database_stays_compressed(tmp_path: Path) -> None:
    packed = tmp_path / "r.db.gz"
    packed.write_bytes(
        gzip.compress(
            write_rocpd(tmp_path / "r.db", program(1), environment=ENVIRONMENT).read_bytes()
        )
    )
    (tmp_path / "r.db").unlink()
    before = spelled(readers.read(packed))
    assert scrubbing.scan(packed) == scrubbing.scrub(packed) == {"HF_TOKEN": 1, "DB_PASSWORD": 1}
    assert scrubbing.scan(packed) == {}
    assert spelled(readers.read(packed)) == before
    (tmp_path / "plain.db").write_bytes(gzip.decompress(packed.read_bytes()))
    assert environments(tmp_path / "plain.db") == [CLEAN]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["plain.db", "r.db.gz"]


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_json_keeps_every_other_byte(tmp_path: Path, name: str) -> None:
    path = kineto(tmp_path / name)
    path.chmod(0o640)
    before = spelled(readers.read(path))
    opened = gzip.open if name.endswith(".gz") else open
    with opened(path, "rt") as file:
        text = file.read()
    assert scrubbing.scrub(path) == {"HF_TOKEN": 1, "DB_PASSWORD": 1}
    with opened(path, "rt") as file:
        assert file.read() == text.replace(
            json.dumps(json.dumps(ENVIRONMENT)), json.dumps(json.dumps(CLEAN))
        )
    assert spelled(readers.read(path)) == before
    assert path.stat().st_mode & 0o777 == 0o640
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_the_command_line_says_what_it_removed_and_never_the_value(tmp_path: Path) -> None:
    path, fine = kineto(tmp_path / "t.json"), tmp_path / "fine.txt"
    fine.write_text("PATH=/bin\n")
    raw = path.read_bytes()
    planned = profharness("scrub", "--dry-run", str(path), str(fine))
    assert planned.returncode == 0
    assert planned.stdout.splitlines() == [
        f"{path}: would remove 2 values (DB_PASSWORD, HF_TOKEN)",
        f"{fine}: nothing that looks secret",
    ]
    assert path.read_bytes() == raw
    done = profharness("scrub", str(tmp_path / "absent.json"), str(path))
    assert done.returncode == 4
    assert "absent.json does not exist" in done.stderr
    assert done.stdout == f"{path}: removed 2 values (DB_PASSWORD, HF_TOKEN)\n"
    assert (
        TOKEN not in planned.stdout + planned.stderr + done.stdout + done.stderr + path.read_text()
    )


def test_the_folder_of_a_scan_with_the_empty_logs_of_its_points(tmp_path: Path) -> None:
    run = tmp_path / "run"
    logs = run / "points" / "bare" / "torch-b1"
    logs.mkdir(parents=True)
    (run / MANIFEST).write_text("{}")
    (logs / "stdout.log").write_text("")
    (logs / "stderr.log").write_text(f"HF_TOKEN={TOKEN}\n")
    done = profharness("scrub", str(run))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"{logs / 'stderr.log'}: removed 1 value (HF_TOKEN)",
        f"{run}: nothing that looks secret in 2 other files",
    ]
    assert (logs / "stdout.log").read_bytes() == b""
    assert TOKEN not in (logs / "stderr.log").read_text()


def test_files_that_cannot_be_cleaned_stay_and_say_why(tmp_path: Path) -> None:
    cut = kineto(tmp_path / "cut.json.gz")
    cut.write_bytes(cut.read_bytes()[:-20])
    binary = tmp_path / "t.pftrace"
    binary.write_bytes(b"\x0a\x02\x08\x01HF_TOKEN=" + TOKEN.encode())
    packed = tmp_path / "r.db.gz"
    packed.write_bytes(
        gzip.compress(
            write_rocpd(tmp_path / "r.db", program(1), environment=ENVIRONMENT).read_bytes()
        )[:-20]
    )
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"SQLite format 3\0" + b"\1" * 5000)
    for path, why in (
        (cut, "damaged"),
        (binary, "neither SQLite nor Parquet nor a Perfetto trace"),
        (packed, "damaged|cut|early"),
        (broken, "damaged"),
        (tmp_path, "folder"),
    ):
        raw = path.read_bytes() if path.is_file() else b""
        with pytest.raises(InputError, match=why):
            scrubbing.scrub(path)
        assert not path.is_file() or path.read_bytes() == raw


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_a_database_in_use_is_left_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, journal: str
) -> None:
    monkeypatch.setattr(database, "BUSY_S", 0.05)
    path = write_rocpd(tmp_path / "r.db", program(1), environment=ENVIRONMENT)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute(f"PRAGMA journal_mode = {journal}")
    holder.execute("BEGIN")
    holder.execute("SELECT * FROM processes").fetchone()
    with pytest.raises(InputError, match="locked"):
        scrubbing.scrub(path)
    holder.close()
    assert environments(path) == [ENVIRONMENT]


def test_one_finding_of_all_files_with_names_only(tmp_path: Path) -> None:
    first = write_rocpd(tmp_path / "a.db", program(1), environment=ENVIRONMENT)
    shutil.copy(first, tmp_path / "b.db")
    (tmp_path / "c.txt").write_text("fine")
    artifacts = [
        Artifact(path=name, layer="rocprofv3", format="rocpd", pass_name="rocprofv3")
        for name in ("a.db", "b.db", "c.txt", "absent.db")
    ]
    (found,) = scrubbing.findings(tmp_path, artifacts)
    assert (found.id, found.severity) == ("secrets-in-artifact", "warning")
    assert found.message == "a.db and 1 more: values that look secret (DB_PASSWORD x2, HF_TOKEN x2)"
    assert found.figures == {"files": 2, "values": 4}
    assert TOKEN not in str(found)
    assert scrubbing.findings(tmp_path, artifacts[2:]) == ()


def test_merged_and_reported_traces_hold_no_secret(tmp_path: Path) -> None:
    said = f"request with HF_TOKEN={TOKEN}"
    range_ = Call(
        "MARKER_CORE_RANGE_API",
        "roctxThreadRangeA",
        63_857_982_592_000,
        63_857_982_692_000,
        9,
        4711,
        said,
    )
    given = program(1)
    path = write_rocpd(tmp_path / "4711_results.db", replace(given, calls=(*given.calls, range_)))
    merged = tmp_path / "merged.pftrace"
    assert profharness("merge", str(path), "-o", str(merged)).returncode == 0
    for name in ("1.db", "2.db"):
        write_rocpd(tmp_path / name, replace(given, calls=(range_,)))
    both = tmp_path / "both.pftrace"
    assert (
        profharness(
            "merge",
            "--allow-unaligned",
            str(tmp_path / "1.db"),
            str(tmp_path / "2.db"),
            "-o",
            str(both),
        ).returncode
        == 0
    )
    for file in (merged, both):
        assert TOKEN.encode() not in file.read_bytes()
        names = readers.read(file)
        assert f"request with HF_TOKEN={MARKER}" in names.strings.decode(names.marks.name)
    before, after = readers.read(path), understand.load([path]).trace
    assert [
        name if TOKEN not in name else f"request with HF_TOKEN={MARKER}"
        for name in before.strings.decode(before.marks.name)
    ] == after.strings.decode(after.marks.name)
    assert {table: rows for table, rows in spelled(before).items() if table != "marks"} == {
        table: rows for table, rows in spelled(after).items() if table != "marks"
    }


def test_a_run_writes_no_secret_of_its_command_line_and_reports_those_of_its_tools(
    tmp_path: Path,
) -> None:
    node = Node(tmp_path, "7.0")
    done = node.run(
        "--profile",
        "amd-log",
        "--quiet",
        program=(
            "--miopen",
            f"--api-token={TOKEN}",
            "--password",
            "hunter2",
            f"NOTE HF_TOKEN={TOKEN}",
        ),
    )
    assert done.returncode == 0, done.stderr
    assert f"--api-token={TOKEN}" in done.stdout  # the program itself was given everything
    text = (node.run_dir / "manifest.json").read_text()
    assert TOKEN not in text
    assert "hunter2" not in text
    assert f"--api-token={MARKER}" in node.manifest.command
    assert not [
        file
        for file in node.run_dir.rglob("*")
        if file.is_file() and TOKEN.encode() in file.read_bytes()
    ]


def test_a_run_tells_of_secrets_in_the_database_of_its_tool(tmp_path: Path) -> None:
    node = Node(tmp_path, "7.0")
    done = node.run(
        "--profile", "rocprofv3", "--quiet", PLANTED_TOKEN=TOKEN, PLANTED_AUTHOR="somebody"
    )
    assert done.returncode == 0, done.stderr
    found = next(one for one in node.manifest.findings if one.id == "secrets-in-artifact")
    (database,) = (
        artifact.path for artifact in node.manifest.artifacts if artifact.format == "rocpd"
    )
    assert found.message == f"{database}: values that look secret (PLANTED_TOKEN)"
    kernels = node.kernels()
    scrubbed = profharness("scrub", str(node.run_dir))
    assert (scrubbed.returncode, scrubbed.stderr) == (0, "")
    removed, others = scrubbed.stdout.splitlines()
    assert removed == f"{node.run_dir / database}: removed 1 value (PLANTED_TOKEN)"
    assert others.startswith(f"{node.run_dir}: nothing that looks secret in ")
    assert scrubbing.scan(node.run_dir / database) == {}
    assert environments(node.run_dir / database) == [
        {"PLANTED_TOKEN": MARKER, "PLANTED_AUTHOR": "somebody"}
    ]
    assert node.kernels() == kernels
    assert not [
        file
        for file in node.run_dir.rglob("*")
        if file.is_file() and TOKEN.encode() in file.read_bytes()
    ]


def test_nothing_in_real_traces_is_taken_for_a_secret(shared: Path) -> None:
    """Names of kernels and packages, addresses, hashes, and what was masked before."""
    chosen = [
        *sorted((shared / "fixtures/kineto").glob("*bert_small.json.gz")),
        *sorted((shared / "fixtures/rocm").rglob("*.csv"))[:20],
    ]
    assert chosen
    assert {str(file): found for file in chosen if (found := scrubbing.scan(file))} == {}


@pytest.mark.thorough
def test_nothing_in_any_fixture_is_taken_for_a_secret(shared: Path) -> None:
    files = [file for file in (shared / "fixtures").rglob("*") if file.is_file()]
    assert files
    looked, held = 0, {}
    for file in files:
        try:
            found = scrubbing.scan(file)
        except InputError:
            continue  # models are weights
        looked += 1
        if found:
            held[str(file)] = found
    assert held == {}
    assert looked > 0.9 * len(files)


def test_no_link_is_followed_out_of_a_run_and_what_is_left_is_said(tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text(f"HF_TOKEN={TOKEN}\n")
    run = tmp_path / "run"
    run.mkdir()
    (run / MANIFEST).write_text("{}")
    (run / "link.txt").symlink_to(outside)
    (run / "folder").symlink_to(tmp_path)
    (run / "weights.bin").write_bytes(bytes(range(256)) * 20)
    (tmp_path / "other").symlink_to(run)
    done = profharness("scrub", str(tmp_path / "other"))
    assert done.returncode == 4
    for name in ("link.txt is a link", "folder is a link", "weights.bin is neither"):
        assert name in done.stderr
    assert done.stdout == f"{tmp_path / 'other'}: nothing that looks secret in 1 file\n"
    assert TOKEN in outside.read_text()
    artifact = Artifact(path="../outside.txt", layer="x", format="text", pass_name="x")
    assert scrubbing.findings(run, [artifact]) == ()


def test_what_a_killed_writer_left_beside_a_database_goes_with_its_secrets(tmp_path: Path) -> None:
    path = write_rocpd(tmp_path / "r.db", program(1), environment=ENVIRONMENT)
    journal = tmp_path / "r.db-journal"
    journal.write_bytes(bytes(28) + f"HF_TOKEN={TOKEN}".encode())  # persistent, and not hot
    leftover = tmp_path / ".r.db.scrub-999999999-abc"
    leftover.write_text(TOKEN)
    assert scrubbing.scrub(path) == {"HF_TOKEN": 1, "DB_PASSWORD": 1}
    assert [file.name for file in tmp_path.iterdir()] == ["r.db"]


def test_no_file_of_a_run_is_passed_over_for_its_name(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text("{}")
    told = f"HF_TOKEN={TOKEN}\n"
    for name in ("a.txt", ".a.txt.scrub-999999999-x", ".b.txt.scrub-999999999-x", ".c.scrub-mine"):
        (tmp_path / name).write_text(told)
    written = tmp_path / f".d.txt.scrub-{os.getpid()}-x"
    written.write_text(told)
    done = profharness("scrub", str(tmp_path))
    assert done.returncode == 4
    assert f"not looked at: {written} is written by a scrub that runs" in done.stderr
    assert done.stdout.count("removed 1 value (HF_TOKEN)") == 3
    holding = [file.name for file in tmp_path.iterdir() if TOKEN in file.read_text()]
    assert holding == [written.name]
    assert not (tmp_path / ".a.txt.scrub-999999999-x").exists()


@pytest.mark.parametrize("later", [TOKEN.swapcase(), "none"])
def test_journals_of_a_runs_databases_go_with_these_or_are_told(tmp_path: Path, later: str) -> None:
    (tmp_path / MANIFEST).write_text("{}")
    path, journal = tmp_path / "r.db", tmp_path / "r.db-journal"
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("PRAGMA journal_mode = PERSIST")
    writer.execute("CREATE TABLE said (name TEXT, text TEXT)")
    writer.execute("INSERT INTO said VALUES ('HF_TOKEN', ?)", (TOKEN,))
    writer.execute("UPDATE said SET text = ?", (later,))
    writer.close()
    assert TOKEN.encode() in journal.read_bytes()
    done = profharness("scrub", str(tmp_path))
    if later == "none":
        assert done.returncode == 4
        assert f"not looked at: {path}: r.db-journal beside it" in done.stderr
        return
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{path}: removed 1 value (HF_TOKEN)" in done.stdout
    assert not journal.exists()
    assert TOKEN.encode() not in path.read_bytes()
    assert sqlite3.connect(path).execute("SELECT text FROM said").fetchall() == [(MARKER,)]


@pytest.mark.parametrize(
    "definition",
    [
        "CREATE INDEX i ON said (length(printf('%9000000d', text)))",
        "CREATE TABLE other (n CHECK (printf('%9000000d', n) <> ''))",
        "CREATE TABLE other (n, m AS (printf('%9000000d', n)))",
    ],
)
def test_a_definition_that_makes_much_of_little_is_not_carried_out(
    tmp_path: Path, definition: str
) -> None:
    path = tmp_path / "r.db"
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("CREATE TABLE said (name TEXT, text TEXT)")
    writer.execute("CREATE INDEX j ON said (lower(name))")
    writer.execute("INSERT INTO said VALUES ('HF_TOKEN', ?)", (TOKEN,))
    writer.close()
    assert scrubbing.scrub(path) == {"HF_TOKEN": 1}
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("UPDATE said SET text = ?", (TOKEN,))
    writer.execute(definition)
    writer.close()
    with pytest.raises(InputError, match=r"cannot be cleaned: .*printf|asks for"):
        scrubbing.scrub(path)
    assert TOKEN.encode() in path.read_bytes()
