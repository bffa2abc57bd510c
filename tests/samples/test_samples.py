"""Run directories of earlier versions: every later one reads the same figures from them.

A figure that is changed on purpose is changed here, too, and told in `CHANGELOG.md`.
"""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from profharness.cli import run_cli
from tests.samples.figures import figures_of
from tests.samples.keep import SAMPLES, unpacked

NAMES = sorted(path.name.removesuffix(".tar.xz") for path in SAMPLES.glob("*.tar.xz"))


@pytest.mark.parametrize("name", NAMES)
def test_a_kept_run_has_the_figures_that_it_had(tmp_path: Path, name: str) -> None:
    kept = json.loads((SAMPLES / f"{name}.json").read_text())
    found = figures_of(unpacked(name, tmp_path))
    assert len(kept) >= 5
    missing = sorted(kept.keys() - found.keys())
    assert not missing
    changed = {key: (kept[key], found[key]) for key in kept if found[key] != approx(kept[key])}
    assert not changed


def test_samples_are_listed_with_their_points(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in NAMES:
        unpacked(name, tmp_path)
    assert run_cli(["ls", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(NAMES) >= 6
    for line in lines:
        assert line.startswith("done"), line
        assert (" 2 points" in line) == ("scan" in line or "served" in line), line


def test_samples_name_nothing_of_the_machine_that_made_them() -> None:
    for name in NAMES:
        with tarfile.open(SAMPLES / f"{name}.tar.xz") as archive:
            for member in archive:
                file = archive.extractfile(member)
                data = file.read() if file is not None else b""
                assert b"/tmp/" not in data, member.name
                assert b"/root" not in data, member.name


def approx(value: float) -> object:
    """The same figure but for the last digits, which the order of a sum may change."""
    return pytest.approx(value, rel=1e-9, abs=1e-12)
