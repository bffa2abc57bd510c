"""Use and memory over time: of one device its own, of several their mean and how far they lie
apart.
"""

from __future__ import annotations

import numpy as np
import pytest

from profharness.analysis.run.resources import columns
from tests.analysis.scene import Scene


def scene(devices: int) -> Scene:
    made = Scene()
    for device in range(devices):
        for tick in range(3):
            at = 1_000 * tick + device  # no two devices are read at the same instant
            made.sample("gpu_percent", at, at, 10.0 * device + tick, device=device)
            made.sample("gpu_memory_used", at, at, 10.0 * (device + 1), device=device)
            made.sample("gpu_memory_total", at, at, 100.0, device=device)
    return made


def test_one_device_is_drawn_as_it_is() -> None:
    found = columns(scene(1).build(), None)
    assert found is not None
    assert found.devices == 1
    assert found.use.tolist() == found.least.tolist() == found.most.tolist() == [0, 1, 2]
    assert found.memory.tolist() == [10, 10, 10]


@pytest.mark.parametrize("count", [2, 16])
def test_several_devices_are_a_mean_and_never_a_sum(count: int) -> None:
    found = columns(scene(count).build(), None)
    assert found is not None
    assert found.devices == count
    assert np.all(found.most <= 100)
    # at the first instant only the first device was read; later each has its value of the tick before
    later = np.minimum(10.0 * np.arange(count)[:, None] + [[0.0, 1.0]], 100)
    later[0] += 1
    np.testing.assert_allclose(found.use, [0, *later.mean(axis=0)])
    np.testing.assert_allclose(found.most, [0, *later.max(axis=0)])
    np.testing.assert_allclose(found.least, [0, *later.min(axis=0)])
    np.testing.assert_allclose(found.memory[1:], 10 * np.arange(1, count + 1).mean())


def test_without_samples_there_is_nothing_to_draw() -> None:
    assert columns(Scene().build(), None) is None
