"""Energy counters of CPU packages over an emulated powercap tree."""

from __future__ import annotations

from pathlib import Path

from profharness.telemetry.sources.host.rapl import RaplSource


def zone(root: Path, name: str, kind: str, energy: int | None, wraps_at: int = 1000) -> Path:
    folder = root / "class/powercap" / name
    folder.mkdir(parents=True)
    (folder / "name").write_text(f"{kind}\n")
    (folder / "max_energy_range_uj").write_text(f"{wraps_at}\n")
    if energy is not None:
        (folder / "energy_uj").write_text(f"{energy}\n")
    return folder / "energy_uj"


def read(source: RaplSource) -> int | float:
    row: list[int | float] = [-1]
    source.read(row, 0)
    return row[0]


def test_packages_are_summed_and_parts_are_not(tmp_path: Path) -> None:
    first, second = (
        zone(tmp_path, "intel-rapl:0", "package-0", 900),
        zone(tmp_path, "intel-rapl:1", "package-1", 10),
    )
    zone(tmp_path, "intel-rapl:0:0", "core", 500)
    zone(tmp_path, "intel-rapl:2", "psys", 5000)
    zone(tmp_path, "intel-rapl", "control", None)
    source = RaplSource(str(tmp_path))
    assert source.probe() == ()
    assert [
        (column.metric, column.unit, column.form, column.scale) for column in source.columns
    ] == [("power_cpu", "W", "counter", 1e-6)]
    assert read(source) == 0
    first.write_text("990\n")
    second.write_text("15\n")
    assert read(source) == 95
    first.write_text("40\n")  # past its range of 1000
    assert read(source) == 95 + 50


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    (absent,) = RaplSource(str(tmp_path)).probe()
    assert "powercap is absent" in absent.why
    zone(tmp_path, "intel-rapl:0", "core", 1)
    (absent,) = RaplSource(str(tmp_path)).probe()
    assert "no CPU package" in absent.why
    zone(tmp_path, "intel-rapl:1", "package-0", None)
    (absent,) = RaplSource(str(tmp_path)).probe()
    assert "energy_uj cannot be read" in absent.why
