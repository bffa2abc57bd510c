"""What the head of a merged trace takes from a run's manifest."""

from __future__ import annotations

import pytest

from profharness.rundir.manifest import Manifest, ScanRecord
from profharness.understand.merge.head import write_options


@pytest.mark.parametrize(("item", "unit"), [("jet", "jets/s"), ("batch", "batches/s")])
def test_throughput_counts_the_items_of_the_scan(item: str, unit: str) -> None:
    scan = ScanRecord(name="scan", item=item)
    manifest = Manifest(
        id="run", created="", profharness="0", kind="scan", argv=(), state="done", scan=scan
    )
    assert write_options(manifest).rate_unit == unit
    assert write_options(None).rate_unit == "items/s"
