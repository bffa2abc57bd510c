"""`certify` as a user calls it: what it writes and prints, its exit codes, and how it refuses."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from profharness.analysis.certificate.criteria import CRITERIA
from profharness.analysis.certificate.document import KIND
from profharness.cli import run_cli
from tests.conftest import ROOT
from tests.report.sheets.browser import data_of, dom_of, needs_browser
from tests.understand.certificate.made_runs import SATURATED, UNSATURATED, make


@pytest.fixture(scope="module")
def runs_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    make(folder / "full", SATURATED)
    make(folder / "small", UNSATURATED)
    return folder


@pytest.fixture
def runs(runs_once: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a saturated and an unsaturated run, which is the working directory."""
    monkeypatch.setenv("PROFHARNESS_CACHE", str(tmp_path / "cache"))
    folder = shutil.copytree(runs_once, tmp_path / "runs")
    monkeypatch.chdir(folder)
    return folder


def test_a_gate_passes_a_saturated_run_alone(runs, capsys):
    assert run_cli(["certify", "full"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("NVIDIA A100-SXM4-80GB at torch-b1024 is saturated")
    assert text.endswith("full/certificate.html   full/certificate.json\n")
    assert [line.split()[0] for line in text.splitlines()[1:-1]] == [one.id for one in CRITERIA]
    assert run_cli(["certify", "small"]) == 1
    assert "Not met: plateau, busy, fill, limiter." in capsys.readouterr().out


def test_a_check_passes_what_holds_whatever_it_says(runs, capsys):
    assert run_cli(["certify", "small"]) == 1
    assert run_cli(["certify", "--check", "small/certificate.json"]) == 0
    assert "holds: not saturated" in capsys.readouterr().out
    with (runs / "small" / "telemetry" / "node.samples.bin").open("ab") as file:
        file.write(b"\0")
    assert run_cli(["certify", "--check", "small/certificate.json"]) == 1
    text = capsys.readouterr().out
    assert "does not hold" in text
    assert "changed     telemetry/node.samples.bin" in text


def test_json_is_the_document(runs, capsys):
    assert run_cli(["certify", "full", "--json"]) == 0
    text = capsys.readouterr().out
    assert text == (runs / "full" / "certificate.json").read_text()
    document = json.loads(text)
    assert (document["kind"], document["judgement"]["outcome"]) == (KIND, "saturated")
    assert run_cli(["certify", "--check", "full/certificate.json", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == {
        "schema": 1,
        "run": "made",
        "point": "torch-b1024",
        "outcome": "saturated",
        "holds": True,
        "recomputed": True,
        "files": len(document["files"]),
        "faults": [],
        "scrubbed": [],
        "notes": [],
    }


def test_the_fields_of_both_documents_are_documented(runs, capsys):
    run_cli(["certify", "full", "--json"])
    document = json.loads(capsys.readouterr().out)
    run_cli(["certify", "--check", "full/certificate.json", "--json"])
    checked = json.loads(capsys.readouterr().out)
    text = (ROOT / "docs" / "certificate.md").read_text()
    judgement = document["judgement"]
    for name in (*document, *judgement, *judgement["judged"][0], *document["files"][0], *checked):
        assert f"`{name}`" in text or f'"{name}"' in text, name


def test_a_certificate_is_not_overwritten_unasked(runs, capsys):
    assert run_cli(["certify", "full"]) == 0
    assert run_cli(["certify", "full"]) == 2
    assert "full/certificate.json exists" in capsys.readouterr().err
    assert run_cli(["certify", "full", "--force"]) == 0


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["nothing"], 4, "nothing: there is no such run directory"),
        (["."], 4, "is not a run directory"),
        (["full", "--point", "torch-b3"], 2, "its points are torch-b1, torch-b4"),
        (["full", "-o", "c.html"], 2, "-o the JSON document"),
        (["full", "-o", "full/manifest.json", "--force"], 2, "would be destroyed"),
        (["--check", "nothing.json"], 4, "nothing.json: there is no such file"),
        (["--check", "full/manifest.json"], 4, "is no certificate"),
        (["--check", "c.json", "--point", "torch-b1"], 2, "--check only reads"),
        (["--check", "far.json"], 4, "name the run, too: profharness certify --check far.json RUN"),
        (["--check", "far.json", "nothing"], 4, "nothing: there is no such run directory"),
    ],
)
def test_refusals_say_what_to_do(runs, capsys, words, code, said):
    assert run_cli(["certify", "full", "-o", "far.json"]) == 0
    before = sorted(path.as_posix() for path in runs.rglob("*"))
    capsys.readouterr()
    assert run_cli(["certify", *words]) == code
    assert said in capsys.readouterr().err
    assert sorted(path.as_posix() for path in runs.rglob("*")) == before


@needs_browser
@pytest.mark.parametrize("name", ["full", "small"])
def test_the_page_works_offline(runs, tmp_path, name):
    run_cli(["certify", name])
    dom = dom_of(runs / name / "certificate.html", tmp_path / "browser")
    assert data_of(dom)["ready"] == "yes"
    assert "errors" not in data_of(dom)
    document = json.loads((runs / name / "certificate.json").read_text())
    for judged in document["judgement"]["judged"]:
        assert f">{judged['id']}</td>" in dom
    assert document["judgement"]["answer"] in dom


def test_the_page_takes_no_markup_from_a_run(runs):
    manifest = runs / "full" / "manifest.json"
    hostile = manifest.read_text().replace("570.86", "<script>alert(1)</script>")
    manifest.write_text(hostile)
    assert run_cli(["certify", "full"]) == 0
    page = (runs / "full" / "certificate.html").read_text()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
