"""The harness's side of the gate that says when hardware counters are read."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace

from profharness.measure.sampler import Sampler
from profharness.options.settings import COMMAND_LINE, from_mapping
from profharness.rundir.paths import RunDir


def test_a_pass_without_them_begins_once_the_devices_are_free(tmp_path: Path) -> None:
    """Another tool that counts finds them locked otherwise, or programs the same registers."""
    request = from_mapping(
        {"command": ("true",), "profile": "device-counters,rocprofv3"}, COMMAND_LINE
    )
    sampler = Sampler(RunDir(tmp_path), request, "n", None)
    sampler._sidecar = SimpleNamespace(alive=lambda: True)  # type: ignore[assignment]  # stands in
    sampler._folder.mkdir()
    sampler._gate.touch()
    sampler._told.touch()
    freed = threading.Timer(0.2, sampler._told.unlink)
    freed.start()
    sampler.count(("rocprofv3",))
    assert not sampler._gate.exists()
    assert not sampler._told.exists(), "it did not wait for the sampler's word"
    freed.join()
    sampler.count(("rocprofv3",))  # and with nothing to wait for it does not
