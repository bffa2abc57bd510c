"""Shared memory of a GPU where the vendor's library cannot be loaded."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.usefixtures("workloads")


@pytest.mark.parametrize(("vendor", "devices"), [("cuda", "NVIDIA"), ("hip", "AMD")])
def test_a_missing_library_is_named_with_the_way_to_it(
    vendor: str, devices: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from profharness_workloads.loadgen import device_memory
    from profharness_workloads.shared.protocol import MISSING, Refusal

    known = device_memory.LIBRARIES[vendor]
    absent = known._replace(files=("libnowhere.so", "libnowhere.so.1"))
    monkeypatch.setitem(device_memory.LIBRARIES, vendor, absent)
    with pytest.raises(Refusal, match=f"libnowhere.so is not .*{devices} GPUs need") as refused:
        device_memory.memory(vendor, 0)
    assert refused.value.code == MISSING
    assert "LD_LIBRARY_PATH" in refused.value.hint
