from __future__ import annotations

import msgspec
import pytest

from profharness.errors import InputError
from profharness.measure.calibrate import Measured, typed
from profharness.node import ceilings as calibration
from profharness.node.ceilings import (
    Calibration,
    cache_dir,
    lacking,
    of_device,
    path_of,
    relevant,
    store,
    stored,
)
from profharness.node.probe import Device, Environment

CPU = Calibration(
    created="2026-01-01T00:00:00+00:00",
    kind="cpu",
    name="A CPU of 2 cores",
    compute_units=2,
    software={"torch": "2.13.0"},
    gemm_flops={"fp32": 1e11},
    copy_bytes_per_s=1.2e10,
    launch_ns=900.0,
    round_trip_ns=1000.0,
    notes=("fp8: no kernel",),
)


def changed(**fields):
    return msgspec.structs.replace(CPU, **fields)


def test_what_is_stored_is_read_back_and_replaced_by_the_next(tmp_path):
    path = store(CPU, tmp_path)
    assert stored(tmp_path) == (CPU,)
    assert (
        store(changed(created="2026-02-01T00:00:00+00:00", copy_bytes_per_s=2e10), tmp_path) == path
    )
    assert [one.copy_bytes_per_s for one in stored(tmp_path)] == [2e10]


def test_devices_sizes_and_software_have_files_of_their_own(tmp_path):
    others = [
        changed(name="Another"),
        changed(compute_units=4),
        changed(software={"torch": "2.14.0"}),
        changed(architecture="sm_90"),
    ]
    assert len({path_of(one, tmp_path) for one in (CPU, *others)}) == 5
    for one in (CPU, *others):
        store(one, tmp_path)
    assert len(stored(tmp_path)) == 5


def test_a_damaged_file_counts_as_not_there(tmp_path):
    store(CPU, tmp_path)
    (path_of(CPU, tmp_path).parent / "broken.json").write_text("{")
    assert stored(tmp_path) == (CPU,)
    assert stored(tmp_path / "nowhere") == ()


def test_lookup_takes_the_device_of_that_size_and_prefers_its_software():
    newer = changed(created="2026-03-01", software={"torch": "2.14.0"}, copy_bytes_per_s=3e10)
    wide = changed(created="2026-04-01", compute_units=16)
    kept = (CPU, newer, wide)
    assert (
        of_device(kept, name=CPU.name, compute_units=2, software={"torch": "2.13.0", "numpy": "1"})
        == CPU
    )
    assert of_device(kept, name=CPU.name, compute_units=2, software={"torch": "9"}) == newer
    assert of_device(kept, name=CPU.name, compute_units=8) is None
    assert of_device(kept, name="", compute_units=2) is None
    assert of_device((changed(aliases=("sysfs name",)),), name="sysfs name").name == CPU.name


def test_a_run_keeps_a_copy(tmp_path, monkeypatch):
    monkeypatch.setenv("PROFHARNESS_CACHE", str(tmp_path / "cache"))
    assert cache_dir() == tmp_path / "cache"
    (tmp_path / calibration.COPY_NAME).write_bytes(calibration.encode([CPU]))
    assert calibration.for_run(tmp_path) == (CPU,)
    store(changed(created="2027-01-01"))
    assert [one.created for one in calibration.for_run(tmp_path)] == [CPU.created, "2027-01-01"]
    assert relevant((CPU, changed(name="x")), {"x", "y"}) == (changed(name="x"),)
    (tmp_path / calibration.COPY_NAME).write_text("[]]")
    with pytest.raises(InputError, match=r"calibration\.json: not a readable calibration"):
        calibration.for_run(tmp_path)


def test_a_run_is_given_what_its_copy_lacks():
    newer, alone = changed(created="2027-01-01", copy_bytes_per_s=2e10), changed(compute_units=1)
    assert lacking((CPU,), (newer, alone)) == (alone,)
    assert lacking((), (newer, alone)) == (newer, alone)
    assert lacking((CPU, alone), (newer, alone)) == ()


def test_the_probes_name_stands_beside_torchs():
    measured = Measured(
        kind="rocm",
        name="AMD Instinct MI300X",
        host="n",
        compute_units=304,
        architecture="gfx942",
        gemm_flops={},
        copy_bytes_per_s=1.0,
        launch_ns=1.0,
        round_trip_ns=1.0,
    )
    node = Environment(
        cpu_model="EPYC",
        devices=(
            Device(0, "cpu"),
            Device(0, "rocm", name="Aqua Vanjaram"),
            Device(1, "rocm", name="Second"),
        ),
    )
    assert typed(measured, "auto", node, "now").aliases == ("Aqua Vanjaram",)
    assert typed(measured, "cuda:1", node, "now").aliases == ("Second",)
    cpu = typed(msgspec.structs.replace(measured, kind="cpu", name=""), "cpu", node, "now")
    assert (cpu.name, cpu.aliases) == ("EPYC", ())


def test_a_cache_that_may_not_be_looked_into_counts_as_empty(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.glob", refuse)
    assert stored(tmp_path) == ()
