"""`bundle`: what is in the zip, that no secret is, and that the same run makes the same bytes."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path

import pytest

from profharness.cli import run_cli
from profharness.cli.sharing.archives import MEMBERS
from profharness.rundir import notes

TOKEN = "hf_" + "AbCdEfGhIjKlMnOpQrStUvWxYz" + "01234567"


@pytest.fixture
def run(sample, here) -> Path:
    return sample("0.1-scan-torch")


def members(archive: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(archive) as opened:
        assert opened.testzip() is None
        return {info.filename: opened.read(info) for info in opened.infolist()}


@pytest.mark.slow
def test_a_bundle_holds_what_a_colleague_needs_and_nothing_else(run, here, out):
    notes.write_notes(run, notes.Notes(tags=("good",)))
    # the results of a run of an older version are written anew, with the columns of this one
    before = {
        path: path.read_bytes()
        for path in run.rglob("*")
        if path.is_file() and path.name != "results.csv"
    }
    text = out("bundle", run).splitlines()
    assert text[-1] == "open report.html; profharness view merged.pftrace"
    assert text[-2].startswith("0.1-scan-torch.zip   ")
    packed = members(here / "0.1-scan-torch.zip")
    assert list(packed) == [f"0.1-scan-torch/{name}" for name in sorted(MEMBERS)]
    for name in MEMBERS:
        assert packed[f"0.1-scan-torch/{name}"] == (run / name).read_bytes()
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.slow
def test_the_same_run_makes_the_same_bytes(run, here, out):
    out("bundle", run, "-o", "a.zip")
    for path in run.iterdir():
        path.touch()
    out("bundle", run, "-o", "b.zip")
    assert (here / "a.zip").read_bytes() == (here / "b.zip").read_bytes()


@pytest.mark.slow
def test_nothing_is_overwritten_unasked(run, here, out, capsys):
    (here / "0.1-scan-torch.zip").write_text("mine")
    assert run_cli(["bundle", str(run)]) == 2
    assert "0.1-scan-torch.zip exists" in capsys.readouterr().err
    assert (here / "0.1-scan-torch.zip").read_text() == "mine"
    out("bundle", run, "--force")
    assert members(here / "0.1-scan-torch.zip")


@pytest.mark.slow
def test_secrets_stay_at_home_and_the_run_as_it_is(run, here, out):
    out("report", run)
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["argv"] = [*manifest["argv"], TOKEN]
    (run / "manifest.json").write_text(json.dumps(manifest))
    text = out("bundle", run)
    assert "removed   1 value in manifest.json: " in text
    packed = members(here / "0.1-scan-torch.zip")
    assert not [name for name, data in packed.items() if TOKEN.encode() in data]
    assert json.loads(packed["0.1-scan-torch/manifest.json"])["id"] == manifest["id"]
    assert TOKEN in (run / "manifest.json").read_text()


@pytest.mark.slow
def test_what_cannot_be_looked_into_is_left_out_and_said(run, here, out, tmp_path):
    out("report", run)
    (run / "hotspots.csv").write_bytes(bytes(range(1, 9)) * 100)
    outside = tmp_path / "others.json"
    outside.write_text("{}")
    (run / "summary.json").unlink()
    (run / "summary.json").symlink_to(outside)
    text = out("bundle", run)
    assert "left out  hotspots.csv: " in text
    assert "left out  summary.json: " in text
    names = {name.rsplit("/", 1)[-1] for name in members(here / "0.1-scan-torch.zip")}
    assert names == {"manifest.json", "merged.pftrace", "report.html", "results.csv"}


def test_another_folder_is_no_run(tmp_path, here, capsys):
    assert run_cli(["bundle", str(tmp_path)]) == 4
    assert "is not a run directory" in capsys.readouterr().err
    assert not list(here.iterdir())


@pytest.mark.slow
def test_a_kill_leaves_no_half_zip(run, here, out, monkeypatch):
    out("report", run)

    def ends(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "copyfileobj", ends)
    assert run_cli(["bundle", str(run)]) == 130
    assert not list(here.iterdir())


def test_notes_are_kept_beside_the_manifest(run):
    manifest = (run / "manifest.json").read_bytes()
    assert notes.read_notes(run) == notes.Notes()
    kept = notes.noted(notes.tagged(notes.Notes(), " two  words "), "text\n")
    notes.write_notes(run, kept)
    assert notes.read_notes(run) == notes.Notes(tags=("two words",), note="text")
    assert (run / "manifest.json").read_bytes() == manifest
