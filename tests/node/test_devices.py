from __future__ import annotations

import msgspec
import pytest

from profharness.node.devices import AmdLimits, NvidiaLimits, identify, table
from profharness.trace.wanted import Wanted

WANTED = (
    "MI100",
    "MI210",
    "MI250",
    "MI250X",
    "MI300A",
    "MI300X",
    "MI308X",
    "MI325X",
    "MI350X",
    "MI355X",
    "V100",
    "T4",
    "A10",
    "A30",
    "A100",
    "L4",
    "L40S",
    "H100",
    "H200",
    "B200",
)
RADEON = {
    "RX 6900 XT": (80, 512e9, 23.04, 46.08),
    "RX 7900 XTX": (96, 960e9, 61.44, 122.88),
    "RX 7900 XT": (84, 800e9, 51.6, 103.2),
    "RX 7600 XT": (32, 288e9, 22.57, 45.1),
    "RX 9060 XT": (32, 320e9, 26.5, 105.8),
    "RX 9070 XT": (64, 640e9, 48.7, 194.6),
    "RX 9070": (56, 640e9, 36.1, 144.5),
}
"""Compute units, bandwidth, and TFLOP/s of fp32 and of fp16 on the matrix units."""


@pytest.mark.parametrize("name", WANTED)
def test_every_product_is_found_by_its_name_and_has_peaks_and_bandwidth(name):
    found = identify(name=f"Vendor {name} card")
    assert found.model is not None
    assert found.model.name.split()[0] == name
    assert found.peak("fp16")
    assert found.bandwidth
    assert found.limits
    assert found.compute_units


def test_every_figure_says_where_it_comes_from():
    whole = table()
    for model in whole.devices:
        given = {
            name
            for name in (
                "compute_units",
                "clock_mhz",
                "matrix_clock_mhz",
                "memory_gb_s",
                "memory_gib",
                "power_w",
                "pci_ids",
                "partitions",
                "gemm_tflops",
            )
            if getattr(model, name)
        }
        assert given == set(model.sources), model.name
        assert set(model.sources.values()) <= set(whole.sources), model.name
        assert model.architecture in whole.architectures
    for name, architecture in whole.architectures.items():
        given = {
            field for field in ("flops_per_clock", "amd", "nvidia") if getattr(architecture, field)
        }
        assert given == set(architecture.sources), name
        assert set(architecture.sources.values()) <= set(whole.sources), name
        assert (architecture.amd is None) or (architecture.nvidia is None)
        assert (architecture.limits is None) == (name == "gfx1250"), name


@pytest.mark.parametrize("name", RADEON)
def test_radeon_cards_have_peaks_and_bandwidth(name):
    units, bandwidth, fp32, fp16 = RADEON[name]
    found = identify(name=f"AMD Radeon {name}")
    assert (found.compute_units, found.bandwidth, found.unknown) == (units, bandwidth, ())
    assert found.peak("fp32") / 1e12 == pytest.approx(fp32, rel=0.005)
    assert found.peak("fp16") / 1e12 == pytest.approx(fp16, rel=0.005)
    assert (found.limits.waves, found.limits.wave_size) == (32, 32)


@pytest.mark.parametrize(
    ("name", "unknown"),
    [
        ("AMD Instinct MI350P", ("clock", "memory bandwidth")),
        ("AMD Instinct MI300X HF", ("clock", "compute units", "memory bandwidth")),
        ("AMD Instinct MI308X HF", ("clock", "compute units", "memory bandwidth")),
        ("AMD Instinct MI358", ("clock", "compute units", "memory bandwidth")),
        ("AMD Radeon AI PRO R9700", ("clock", "memory bandwidth")),
        (
            "AMD Instinct MI455X",
            ("operations per clock", "clock", "compute units", "limits of a compute unit"),
        ),
    ],
)
def test_what_no_source_gives_is_named_and_not_guessed(name, unknown):
    found = identify(name=name)
    assert found.model is not None
    assert found.unknown == unknown
    assert found.peak("fp16") is None
    assert (found.bandwidth is None) == ("memory bandwidth" in unknown)


def test_what_was_seen_completes_what_the_table_does_not_know():
    seen = identify(name="AMD Instinct MI300X HF", compute_units=304, clock_mhz=2100)
    assert seen.peak("fp16") == pytest.approx(1307.4e12, rel=1e-3)
    assert (seen.unknown, seen.fraction, seen.partition) == (("memory bandwidth",), 1.0, "")
    assert identify(pci_id="1002:74a9").model.name == "MI300X HF"
    assert identify(pci_id="1002:75a8").model.name == "MI350P"
    assert identify(name="MI350P", compute_units=32).partition == "CPX"
    new = identify(name="Radeon AI PRO R9700", compute_units=64, clock_mhz=2920)
    assert new.peak("int8") == pytest.approx(382.7e12, rel=1e-3)


def test_multiprocessors_of_hip_are_pairs_of_compute_units():
    whole = identify(name="AMD Radeon RX 7900 XTX", compute_units=96)
    pairs = identify(name="AMD Radeon RX 7900 XTX", compute_units=48)
    assert pairs == whole
    assert (pairs.fraction, pairs.bandwidth) == (1.0, 960e9)
    of_memory = identify(architecture="gfx1100", compute_units=48, memory_bytes=24 * 2**30)
    assert (of_memory.model.name, of_memory.compute_units) == ("Radeon RX 7900 XTX", 96)
    assert identify(architecture="gfx90a", compute_units=52).compute_units == 52


def test_half_of_a_package_is_not_taken_for_a_smaller_product():
    assert identify(architecture="gfx950", compute_units=128).model is None
    assert identify(name="MI350P", compute_units=128).model.name == "MI350P"
    half = identify(name="AMD Instinct MI350X", compute_units=128)
    assert (half.model.name, half.partition, half.fraction) == ("MI350X", "DPX", 0.5)


def test_what_products_reach_is_a_part_of_the_peak():
    for model in table().devices:
        device = identify(name=model.names[0])
        assert device.model == model
        for dtype in model.gemm_tflops:
            assert 0.45 < device.reached_share(dtype) < 0.95
    assert identify(name="MI300X").reached_share("bf16") == pytest.approx(708 / 1307.4, rel=1e-3)
    assert identify(name="MI300X").reached_share("fp32") is None
    assert identify(name="no such device").reached_share("bf16") is None


def test_no_name_or_pci_id_means_two_products():
    names = [known for model in table().devices for known in model.names]
    ids = [known for model in table().devices for known in model.pci_ids]
    assert len(names) == len(set(names))
    assert len(ids) == len(set(ids))
    assert all(identify(pci_id=one.upper()).model is not None for one in ids)


# dense peaks as the vendors print them, in TFLOP/s
@pytest.mark.parametrize(
    ("name", "dtype", "printed"),
    [
        ("MI100", "fp64", 11.5),
        ("MI100", "fp32_matrix", 46.1),
        ("MI100", "fp16", 184.6),
        ("MI100", "bf16", 92.3),
        ("MI210", "fp64_matrix", 45.3),
        ("MI210", "bf16", 181.0),
        ("MI300A", "fp16", 980.6),
        ("MI300A", "fp64", 61.3),
        ("MI300X", "fp16", 1307.4),
        ("MI300X", "fp8", 2614.9),
        ("MI300X", "tf32", 653.7),
        ("MI300X", "fp64_matrix", 163.4),
        ("MI325X", "bf16", 1307.4),
        ("MI350X", "fp16", 2306.9),
        ("MI350X", "fp64", 72.1),
        ("MI355X", "fp8", 5033.2),
        ("MI355X", "fp4", 10066.3),
        ("V100-SXM2-32GB", "fp16", 125.0),
        ("V100-SXM2-32GB", "fp32", 15.7),
        ("V100-PCIE-16GB", "fp16", 112.0),
        ("T4", "fp16", 65.0),
        ("T4", "int8", 130.0),
        ("A10", "fp16", 125.0),
        ("A10", "fp32", 31.2),
        ("A30", "bf16", 165.0),
        ("A30", "fp64_matrix", 10.3),
        ("A100-SXM4-80GB", "bf16", 312.0),
        ("A100-SXM4-80GB", "tf32", 156.0),
        ("A100-SXM4-80GB", "fp64", 9.7),
        ("L4", "fp16", 121.0),
        ("L4", "fp32", 30.3),
        ("L40S", "fp32", 91.6),
        ("L40S", "fp16", 362.05),
        ("L40S", "fp8", 733.0),
        ("H100 80GB HBM3", "bf16", 989.4),
        ("H100 80GB HBM3", "fp32", 66.9),
        ("H100 80GB HBM3", "fp64_matrix", 66.9),
        ("H100 PCIe", "fp16", 756.4),
        ("H100 PCIe", "fp32", 51.2),
        ("H200", "fp8", 1978.9),
        ("B200", "fp16", 2250.0),
        ("B200", "fp4", 9000.0),
        ("B200", "fp32", 75.0),
    ],
)
def test_peaks_are_those_of_the_data_sheets(name, dtype, printed):
    assert identify(name=name).peak(dtype) / 1e12 == pytest.approx(printed, rel=0.015)


def test_a_gcd_is_half_of_its_package():
    gcd = identify(name="AMD Instinct MI250X", compute_units=110)
    assert (gcd.fraction, gcd.compute_units) == (0.5, 110)
    assert gcd.bandwidth == 1638.4e9
    assert gcd.peak("fp16") == pytest.approx(191.5e12, rel=1e-3)
    assert identify(name="AMD Instinct MI250X").compute_units == 110  # the runtime lists GCDs
    assert identify(architecture="gfx90a:sramecc+:xnack-", compute_units=110).model.name == "MI250X"


@pytest.mark.parametrize(
    ("name", "units", "mode", "share"),
    [
        ("MI300X", 304, "SPX", 1.0),
        ("MI300X", 152, "DPX", 0.5),
        ("MI300X", 76, "QPX", 0.25),
        ("MI300X", 38, "CPX", 0.125),
        ("MI300A", 76, "TPX", 1 / 3),
        ("MI300A", 38, "CPX", 1 / 6),
        ("MI355X", 32, "CPX", 0.125),
        ("MI308X", 80, "SPX", 1.0),
        ("MI300X", 100, "", 100 / 304),
    ],
)
def test_partitions_scale_peaks_and_bandwidth(name, units, mode, share):
    part, whole = identify(name=name, compute_units=units), identify(name=name)
    assert part.partition == mode
    assert part.peak("bf16") == pytest.approx(share * whole.peak("bf16"))
    assert part.bandwidth == pytest.approx(share * whole.bandwidth)


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("AMD Instinct MI300X VF", "MI300X"),
        ("MI300X_A1", "MI300X"),
        ("NVIDIA A100-PG509-200", "A100 SXM 40GB"),
        ("NVIDIA A100 80GB PCIe", "A100 PCIe 80GB"),
        ("NVIDIA A10", "A10"),
        ("NVIDIA A10G", None),
        ("Tesla V100-DGXS-32GB", "V100 SXM2"),
        ("Tesla T4", "T4"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("NVIDIA L4", "L4"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA L40", None),
        ("", None),
    ],
)
def test_names_are_words_of_their_own(name, model):
    found = identify(name=name).model
    assert (found.name if found else None) == model


def test_what_is_not_known_degrades_to_what_was_observed():
    stranger = identify(name="Accelerator 9000", compute_units=7)
    assert (
        stranger.compute_units,
        stranger.limits,
        stranger.peak("fp16"),
        stranger.bandwidth,
        stranger.fraction,
    ) == (7, None, None, None, 1.0)
    # two products have 256 compute units of gfx950: limits and operations are known, memory and
    # clock are not
    sibling = identify(name="AMD Radeon Graphics", architecture="gfx950", compute_units=256)
    assert isinstance(sibling.limits, AmdLimits)
    assert (sibling.model, sibling.peak("fp16"), sibling.bandwidth) == (None, None, None)
    assert identify(
        name="AMD Radeon Graphics", architecture="gfx950", compute_units=256, clock_mhz=2400
    ).peak("fp16") == pytest.approx(2516.6e12, rel=1e-4)
    # the hardware is believed before the name
    assert identify(name="MI100", architecture="gfx942").model is None


def test_peaks_follow_the_clock_and_the_better_form_is_told():
    device = identify(name="MI300X")
    assert device.peak("fp16", 1050) == pytest.approx(device.peak("fp16") / 2)
    assert device.best_peak("fp64") == (device.peak("fp64_matrix"), "fp64_matrix")
    assert identify(name="Tesla T4").best_peak("fp32")[1] == "fp32"
    assert identify(name="Tesla T4").best_peak("fp8") is None


def test_limits_of_one_unit():
    assert identify(name="MI100").limits.waves == 40
    assert identify(name="MI300X").limits.threads == 2048
    assert identify(name="MI355X").limits.lds_bytes == 160 * 1024
    ampere = identify(name="NVIDIA A10").limits
    assert isinstance(ampere, NvidiaLimits)
    assert (ampere.waves, ampere.threads, ampere.blocks) == (48, 1536, 16)


def test_the_records_are_immutable():
    with pytest.raises((AttributeError, msgspec.ValidationError)):
        table().devices[0].clock_mhz = 1


def test_memory_tells_products_of_one_size_apart():
    seen = {"architecture": "gfx942", "compute_units": 304}
    assert identify(**seen).model is None
    assert identify(**seen, memory_bytes=206_141_652_992).model.name == "MI300X"
    assert identify(**seen, memory_bytes=256 * 2**30).model.name == "MI325X"
    # an MI210 and a die of an MI250 are the same in all three
    assert identify(architecture="gfx90a", compute_units=104, memory_bytes=64 * 2**30).model is None


def test_a_pci_id_comes_before_the_name():
    assert (
        identify(
            name="AMD Radeon Graphics", architecture="gfx90a", compute_units=104, pci_id="1002:740C"
        ).model.name
        == "MI250"
    )
    assert identify(name="MI300X", pci_id="1002:74a5").model.name == "MI325X"
    assert identify(pci_id="1002:ffff", name="MI100").model.name == "MI100"


def test_devices_of_recorded_files_are_found(shared):
    """A Kineto file that leaves the name empty, and rocprofv3's agents by their ids."""
    from profharness import readers
    from profharness.analysis.kernels.accelerators import of_device

    nameless = readers.read(
        shared / "fixtures/kineto/mi300x_vllm_piecewise_graphs.json.gz"
    ).devices[0]
    assert (nameless.name, of_device(nameless).model.name) == ("", "MI300X")
    agents = readers.read(
        shared / "fixtures/rocm/rocprofv3/csv/gfx950_bank_test_counter_collection.csv"
    ).devices
    assert {(device.name, device.pci_id) for device in agents} == {
        ("AMD Radeon Graphics", "1002:75a3")
    }
    assert {of_device(device).model.name for device in agents} == {
        "MI355X"
    }  # the MI350X has as many compute units
    for path in sorted((shared / "fixtures/rocm/rocprofv3/rocpd").glob("*.db.gz")):
        assert {of_device(device).model.name for device in readers.read(path).devices} == {"MI300X"}


def test_every_source_can_be_looked_up_or_says_that_it_was_not():
    for key, text in table().sources.items():
        recorded = any(
            word in text
            for word in (
                "real nodes",
                "recorded on",
                "rocprofiler-compute",
                "LLVM",
                "reports of users",
            )
        )
        assert "https://" in text or "not rechecked" in text or recorded, key
    used = {
        key
        for one in (*table().devices, *table().architectures.values())
        for key in one.sources.values()
    }
    assert used <= set(table().sources)


@pytest.mark.slow
def test_recorded_devices_agree_with_the_table(shared):
    """Compute units and memory as drivers gave them in real files."""
    from profharness import readers

    seen = {
        (device.name, device.compute_units, device.memory_bytes)
        for path in sorted((shared / "fixtures/kineto").glob("*.json.gz"))
        if "rocprofv3" not in path.name
        for device in readers.read(path, wanted=Wanted.TIMES).devices
        if device.compute_units
    }
    models = {
        name: (identify(name=name).model, units, memory)
        for name, units, memory in seen
        if identify(name=name).model
    }
    assert {model.name for model, _, _ in models.values()} >= {
        "MI300X",
        "MI210",
        "H100 SXM",
        "A100 SXM 40GB",
        "A100 SXM 80GB",
        "V100 SXM2",
    }
    for name, (model, units, memory) in models.items():
        assert model.listed_units == units, name
        assert (
            memory is None
            or abs(memory / (model.memory_gib * 2**30 * units / model.compute_units) - 1) < 0.1
        ), name
