"""Scripts of others: as published, with their licences, in the wheel as well."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest

from profharness.errors import Unavailable
from profharness.report.page import third_party
from profharness.report.page.third_party.scripts import ECHARTS, PAKO, Script, script_text
from tests.conftest import ROOT


def test_each_script_is_the_published_one_with_its_licence_beside_it() -> None:
    assert f'version="{ECHARTS.version}"' in script_text(ECHARTS)
    assert script_text(PAKO).startswith(f"/*! {PAKO.name} {PAKO.version} ")
    folder = files(third_party)
    assert "MIT License" in (folder / "pako.LICENSE.txt").read_text()
    assert "provided 'as-is'" in (folder / "pako.LICENSE-zlib.txt").read_text()
    assert "Apache License" in (folder / "echarts.LICENSE.txt").read_text()
    assert ECHARTS.name in (folder / "echarts.NOTICE.txt").read_text()
    assert "BSD" in (folder / "echarts.LICENSE.txt").read_text()
    assert "Redistribution" in (folder / "echarts.LICENSE-d3.txt").read_text()


def test_a_changed_script_is_refused() -> None:
    with pytest.raises(Unavailable, match=r"echarts\.min\.js is not Apache ECharts"):
        script_text(replace(ECHARTS, sha256="0" * 64))


@pytest.mark.parametrize("script", [ECHARTS, PAKO], ids=lambda one: one.name)
def test_nothing_in_it_ends_a_script_element_or_changes_with_line_ends(script: Script) -> None:
    text = script_text(script)
    assert "</script" not in text
    assert "<!--" not in text
    assert "\r" not in text


@pytest.mark.slow
def test_the_wheel_holds_scripts_and_licences(tmp_path: Path) -> None:
    wheels = pytest.importorskip("hatchling.builders.wheel")
    (built,) = wheels.WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(built) as wheel:
        names = wheel.namelist()
        inside = "profharness/report/page/third_party"
        for script in (ECHARTS, PAKO):
            assert wheel.read(f"{inside}/{script.file}").decode() == script_text(script)
    assert f"{inside}/echarts.LICENSE.txt" in names
    assert f"{inside}/echarts.NOTICE.txt" in names
    assert f"{inside}/pako.LICENSE.txt" in names
    assert any(
        "dist-info/licenses" in name and name.endswith("echarts.NOTICE.txt") for name in names
    )
