"""Ctrl-C advises what fits: a scan goes on, a command has its report."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from profharness.cli.running import steps
from profharness.cli.running.interrupted import way_on, way_to_report


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "manifest.json").touch()
    return tmp_path


def test_a_scan_goes_on_where_it_was(root: Path) -> None:
    said = way_on(root, "traces/my run", is_scan=True)
    assert "`profharness run --resume -o 'traces/my run'`" in said


def test_a_command_is_told_its_report_and_no_resume(root: Path) -> None:
    said = way_on(root, "traces/r", is_scan=False)
    assert "`profharness report traces/r`" in said
    assert "--resume" not in said


def test_before_anything_was_written_there_is_nothing_to_go_on_with(tmp_path: Path) -> None:
    assert "nothing was measured yet" in way_on(tmp_path / "none", "none", is_scan=True)


@pytest.mark.parametrize(("scan", "advice"), [(object(), "--resume"), (None, "report")])
def test_ctrl_c_while_it_measures(
    root: Path,
    scan: object,
    advice: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupt(*_args: object, **_named: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(steps.engine, "execute", interrupt)
    prepared = SimpleNamespace(scan=scan, root=root)
    with pytest.raises(KeyboardInterrupt):
        steps._executed(prepared, (), None, echo_stdout=False, again=None)  # type: ignore[arg-type]
    assert advice in capsys.readouterr().err


def test_ctrl_c_while_it_analyses() -> None:
    assert "`profharness report traces/r` analyses it" in way_to_report("traces/r")


def test_ctrl_c_while_it_analyses_names_the_report(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from profharness.understand import report_run

    def interrupt(_root: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(report_run, "finish", interrupt)
    with pytest.raises(KeyboardInterrupt):
        steps.tell(root, as_json=False, quiet=False, strict=False)
    assert "all that was asked for is measured and kept" in capsys.readouterr().err
