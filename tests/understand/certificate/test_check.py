"""A certificate holds as long as its run is as it was: after a move and after `report`; any changed
byte is found and named, and a scrubbed run is told from a changed one.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from profharness.analysis.certificate.criteria import VERSION
from profharness.analysis.certificate.document import is_as_written, rests, sealed
from profharness.analysis.certificate.records import Fault
from profharness.cli import run_cli
from profharness.errors import InputError, UsageError
from profharness.node import ceilings
from profharness.rundir.covered import files
from profharness.rundir.notes import Notes, write_notes
from profharness.rundir.paths import RunDir
from profharness.understand import report_run
from profharness.understand.certificate import checking
from profharness.understand.certificate.checking import check
from tests.readers.kineto.kineto_files import write
from tests.samples.keep import unpacked
from tests.understand.certificate.made_runs import SATURATED, UNSATURATED, make

TOKEN = "hf_" + "AbCdEfGhIjKlMnOpQrStUvWxYz" + "01234567"


@pytest.fixture(autouse=True)
def no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What this machine measured is not of the made-up device."""
    monkeypatch.setenv("PROFHARNESS_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def certified_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("certified") / "run"
    make(root, replace(SATURATED, secret=f"HF_TOKEN={TOKEN}"))
    with_secrets(root / "artifacts" / "tool")
    assert run_cli(["certify", str(root)]) == 0
    return root


def with_secrets(folder: Path) -> None:
    """Files of a tool that hold a secret: a database, gzipped JSON, a table."""
    folder.mkdir()
    with closing(sqlite3.connect(folder / "node.db")) as database:
        database.execute("CREATE TABLE environment (name TEXT, value TEXT)")
        database.executemany(
            "INSERT INTO environment VALUES (?, ?)", [("HF_TOKEN", TOKEN), ("HOME", "/root")]
        )
        database.commit()
    # a log as a program leaves it that was killed
    with closing(sqlite3.connect(folder / "live.db")) as live:
        live.execute("PRAGMA journal_mode = WAL")
        live.execute("CREATE TABLE environment (name TEXT, value TEXT)")
        live.execute("INSERT INTO environment VALUES ('HF_TOKEN', ?)", [TOKEN])
        live.commit()
        for name in ("live.db", "live.db-wal"):
            shutil.copyfile(folder / name, folder / name.replace("live", "killed"))
    (folder / "live.db").unlink()
    write(folder / "node.json.gz", {"environment": {"HF_TOKEN": TOKEN, "HOME": "/root"}})
    table = pa.table({"name": ["HF_TOKEN", "HOME"], "value": [TOKEN, "/root"]})
    pq.write_table(table, folder / "node.parquet")


@pytest.fixture
def run(certified_once: Path, tmp_path: Path) -> Path:
    """A certified run, moved away from where it was made."""
    return shutil.copytree(certified_once, tmp_path / "elsewhere" / "copy", symlinks=True)


def document(run: Path) -> Path:
    return run / "certificate.json"


def faults(run: Path) -> list[tuple[str, str]]:
    found = check(document(run))
    assert found.holds == (not found.faults)
    return [(fault.name, fault.why) for fault in found.faults]


def test_it_holds_where_the_run_was_moved_to(run):
    found = check(document(run))
    assert (found.holds, found.recomputed, found.outcome) == (True, True, "saturated")
    assert (found.scrubbed, found.notes) == ((), ())


def test_it_holds_after_report_and_notes(run):
    """`report` writes six files into the run, two of them among the records."""
    report_run.finish(run)
    report_run.finish(run)
    assert (run / "telemetry" / "node.parquet").is_file()
    write_notes(run, Notes(note="the good one"))
    assert faults(run) == []


def test_a_calibration_that_is_made_later_changes_nothing(run):
    """It is judged by the ceilings that were known then."""
    calibration = ceilings.Calibration(
        created="2026-01-02T00:00:00Z",
        kind="cuda",
        name="NVIDIA A100-SXM4-80GB",
        gemm_flops={"bf16": 900e12},
    )
    ceilings.store(calibration)
    report_run.finish(run)
    assert (run / ceilings.COPY_NAME).is_file()
    assert faults(run) == []


def test_the_records_are_all_that_report_does_not_make(run):
    """Seen from outside: what is there before `report` runs, but for certificate and page."""
    own = {"certificate.json", "certificate.html"}
    before = {path.relative_to(run).as_posix() for path in run.rglob("*") if path.is_file()}
    content = {name: (run / name).read_bytes() for name in before}
    report_run.finish(run)
    assert set(files.listed(run).paths) == before - own
    assert {name: (run / name).read_bytes() for name in before} == content


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_any_changed_byte_is_found_and_named(certified_once, data):
    """Of any covered file, and of the certificate and its page."""
    run = certified_once
    known = [path for path in run.rglob("*") if path.is_file() and path.stat().st_size]
    path = data.draw(st.sampled_from(sorted(known)))
    before = path.read_bytes()
    at = data.draw(st.integers(0, len(before) - 1))
    other = data.draw(st.integers(1, 255))
    path.write_bytes(before[:at] + bytes([before[at] ^ other]) + before[at + 1 :])
    try:
        found = check(document(run)).faults
        assert [fault.name for fault in found] == [path.relative_to(run).as_posix()]
    except InputError:  # a document that is none any more
        assert path == document(run)
    finally:
        path.write_bytes(before)


def test_the_run_of_the_property_holds_without_a_change(certified_once):
    assert check(document(certified_once)).holds


def added(run: Path) -> str:
    (run / "artifacts" / "torch" / "node" / "77" / "more.json").write_text("{}")
    return "artifacts/torch/node/77/more.json"


def removed(run: Path) -> str:
    (run / "points" / "bare" / "torch-b16" / "trials.csv").unlink()
    return "points/bare/torch-b16/trials.csv"


def renamed(run: Path) -> str:
    path = run / "telemetry" / "node.samples.bin"
    path.rename(run / "telemetry" / "other.samples.bin")
    return "telemetry/node.samples.bin"


def cut(run: Path) -> str:
    path = run / "telemetry" / "node.samples.bin"
    path.write_bytes(path.read_bytes()[:-1])
    return "telemetry/node.samples.bin"


def linked(run: Path) -> str:
    """To the same content outside of the run."""
    path = run / "manifest.json"
    path.rename(run.parent / "manifest.json")
    path.symlink_to(run.parent / "manifest.json")
    return "manifest.json"


def piped(run: Path) -> str:
    os.mkfifo(run / "control" / "pipe")
    return "control/pipe"


@pytest.mark.parametrize("change", [added, removed, renamed, cut, linked, piped])
def test_any_other_change_is_named(run: Path, change: Callable[[Path], str]) -> None:
    name = change(run)
    assert name in [one for one, _ in faults(run)]
    assert not check(document(run)).recomputed


def test_a_manifest_that_names_another_run_is_a_change_and_no_other_run(run):
    path = run / "manifest.json"
    path.write_text(path.read_text().replace('"id": "made"', '"id": "else"'))
    assert faults(run) == [("manifest.json", "changed")]


def test_the_certificate_of_another_run(run, tmp_path):
    other = make(tmp_path / "other", UNSATURATED)
    other.write_manifest(msgspec.structs.replace(other.read_manifest(), id="other"))
    with pytest.raises(UsageError, match=r"of the run made, and .* is the run other"):
        check(document(run), other.root)


def test_a_certificate_far_from_its_run(run, tmp_path):
    far = shutil.copy(document(run), tmp_path / "far.json")
    with pytest.raises(InputError, match="does not lie in a run directory"):
        check(far)
    found = check(far, run)
    assert found.holds
    assert found.notes == ("certificate.html does not lie beside it, and was not checked",)


def read(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def test_a_log_that_goes_without_scrubbing_is_missing(run):
    (run / "artifacts" / "tool" / "killed.db-wal").unlink()
    assert faults(run) == [("artifacts/tool/killed.db-wal", "missing")]


def test_a_scrubbed_run_is_told_and_holds(run, capsys):
    """Files of every form that holds a secret."""
    names = ("killed.db", "killed.db-wal", "node.db", "node.json.gz", "node.parquet")
    secret = [*(f"artifacts/tool/{name}" for name in names), "control/bare/worker-torch-1.log"]
    before = {name: (run / name).read_bytes() for name in secret}
    run_cli(["scrub", str(run)])  # 4: it cannot look into the sampler's file, which holds numbers
    assert not (run / secret[1]).exists()
    changed = {name for name, content in before.items() if read(run / name) != content}
    assert changed == set(secret)
    found = check(document(run))
    assert (found.holds, found.recomputed) == (True, True), found.faults
    assert found.scrubbed == tuple(secret)
    capsys.readouterr()
    assert run_cli(["certify", "--check", str(document(run))]) == 0
    assert f"{secret[-1]}: its secrets were removed" in capsys.readouterr().out


def test_what_is_changed_beside_scrubbing_is_a_change(run):
    run_cli(["scrub", str(run)])
    log = run / "control" / "bare" / "worker-torch-1.log"
    log.write_text(log.read_text().replace("started", "stopped"))
    assert faults(run) == [("control/bare/worker-torch-1.log", "changed")]


def test_a_forged_result_is_recomputed(run):
    """Whoever writes another result into the document, digest included, is told by the files."""
    text = document(run).read_text()
    state = text.index('"state": "met"', text.index('"id": "plateau"'))
    forged = text[:state] + '"state": "not met"' + text[state + len('"state": "met"') :]
    document(run).write_bytes(sealed(forged.encode()))
    (fault,) = check(document(run)).faults
    assert fault == Fault(name="plateau", why="another result", text="not met, now met")


def test_forged_paths_open_nothing_outside(run, tmp_path, monkeypatch):
    (tmp_path / "elsewhere" / "outside").write_text("secret")
    text = document(run).read_text().replace('"points/bare/torch-b1/trials.csv"', '"../outside"')
    document(run).write_bytes(sealed(text.encode()))
    opened: list[str] = []
    real = checking.hash_of
    monkeypatch.setattr(
        checking, "hash_of", lambda root, file: opened.append(file) or real(root, file)
    )
    assert ("../outside", "missing") in faults(run)
    assert "../outside" not in opened


def test_criteria_of_another_version_are_not_compared(run, monkeypatch):
    monkeypatch.setattr(checking, "VERSION", VERSION + 1)
    with pytest.raises(InputError, match=f"criteria are of version {VERSION}") as error:
        check(document(run))
    assert "its files are as they were" in error.value.hint


def test_a_newer_document(run):
    text = document(run).read_text().replace('"schema": 1', '"schema": 2', 1)
    document(run).write_text(text)
    with pytest.raises(InputError, match="newer profharness"):
        check(document(run))


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 20_000), st.integers(1, 255))
def test_each_byte_of_a_document_counts(certified_once, at, other):
    data = bytearray(document(certified_once).read_bytes())
    assert is_as_written(bytes(data))
    data[at % len(data)] ^= other
    assert not is_as_written(bytes(data))


def test_hashes_are_those_of_sha256sum(run):
    """The list of a folder is what `sha256sum` prints, and its hash that of the list."""
    told = json.loads(document(run).read_text())["files"]
    for file in told:
        data = (run / file["path"]).read_bytes()
        assert file["sha256"] == hashlib.sha256(data).hexdigest()
        assert file["size_bytes"] == len(data)
    lines = "".join(
        f"{file['sha256']}  {file['path']}\n" for file in told if file["path"].startswith("points/")
    )
    rest = next(
        one for one in rests(msgspec.convert(told, list[files.FileHash])) if one.name == "points"
    )
    assert rest.sha256 == hashlib.sha256(lines.encode()).hexdigest()


def test_a_run_that_cannot_be_written_into(run, tmp_path, capsys):
    """Its certificate goes elsewhere, and nothing in the run changes."""
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*")}
    assert run_cli(["certify", str(run), "-o", str(tmp_path / "c.json")]) == 0
    assert {path: path.stat().st_mtime_ns for path in run.rglob("*")} == before
    assert run_cli(["certify", "--check", str(tmp_path / "c.json"), str(run)]) == 0


def test_measuring_more_ends_a_certificate(run):
    manifest = RunDir.open(run).read_manifest()
    RunDir.open(run).write_manifest(msgspec.structs.replace(manifest, state="interrupted"))
    assert faults(run) == [("manifest.json", "changed")]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["0.1-command", "0.1-scan-onnxruntime", "0.1-served"])
def test_runs_that_earlier_versions_left_are_certified_and_checked(name, tmp_path):
    """None of these small runs is saturated."""
    run = unpacked(name, tmp_path)
    assert run_cli(["certify", str(run)]) == 1
    found = check(document(run))
    assert (found.holds, found.recomputed) == (True, True)
    report_run.finish(run)
    assert check(document(run)).holds


def test_names_that_are_no_text_are_kept_apart(tmp_path):
    """A file name may hold any bytes but a slash and a zero."""
    run = make(tmp_path / "run").root
    names = [b"byte\xff", rb"byte\udcff", "z\u202eoe\n".encode()]
    for number, name in enumerate(names):
        Path(os.fsdecode(os.fsencode(run / "control") + b"/" + name)).write_text(f"{number}")
    assert run_cli(["certify", str(run)]) == 0
    assert len(list((run / "control").iterdir())) == len(names) + 1
    assert faults(run) == []
    Path(os.fsdecode(os.fsencode(run / "control") + b"/" + names[0])).write_text("other")
    assert faults(run) == [("control/byte\\udcff", "changed")]


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"null", b"\xff", b"[" * 100_000, b'{"kind": "profharness certificate"}']
)
def test_what_is_no_certificate(run, data):
    document(run).write_bytes(data)
    with pytest.raises(InputError) as error:
        check(document(run))
    assert str(document(run)) in error.value.message
