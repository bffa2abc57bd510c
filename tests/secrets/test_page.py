"""Secrets in reports, also in what a page carries compressed."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from profharness.analysis.records import Summary
from profharness.report.page.html import HOTSPOTS_FIRST, render
from profharness.rundir.shown.packed import LARGEST, packed, unpacked
from profharness.secrets.names import MARKER
from profharness.secrets.scrub import scan, scrub
from tests.report.samples import gpu_scan

TOKEN = "hf_" + "Qx7z" * 9
PACKED = re.compile(r"eN[A-Za-z0-9+/]{6,}={0,2}")


def named(*names: str) -> Summary:
    """A scan whose kernels have these names, the first with most time."""
    scan = gpu_scan()
    (kernels, *others) = scan.hotspots
    rows = tuple(
        msgspec.structs.replace(kernels.rows[0], name=name, total_ns=10**9 - at)
        for at, name in enumerate(names)
    )
    return msgspec.structs.replace(
        scan, hotspots=(msgspec.structs.replace(kernels, rows=rows), *others)
    )


def inside(page: str) -> list[str]:
    return [unpacked(text) for text in PACKED.findall(page)]


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """A report with a token in a later row of a table, and in a plot."""
    names = [f"kernel_{at}" for at in range(3 * HOTSPOTS_FIRST)]
    names[0], names[-1] = f"first {TOKEN}", f"last {TOKEN}"
    path = tmp_path / "report.html"
    path.write_text(render(named(*names)))
    return path


def test_a_report_without_secrets_has_none_in_what_is_compressed(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(render(gpu_scan()))
    before = path.read_bytes()
    assert len(inside(before.decode())) >= 2
    assert scan(path) == scrub(path) == Counter()
    assert path.read_bytes() == before


def test_a_secret_goes_from_later_rows_too_and_all_else_stays(page: Path) -> None:
    before = page.read_text()
    assert any(f"last {TOKEN}" in text for text in inside(before))
    found = scan(page)
    assert found.total() == before.count(TOKEN) + sum(text.count(TOKEN) for text in inside(before))
    assert scrub(page) == found
    assert scan(page) == Counter()
    after = page.read_text()
    assert TOKEN not in after
    assert not [text for text in inside(after) if TOKEN in text]
    assert any(f"last {MARKER}" in text for text in inside(after))
    restored = PACKED.sub("", after).replace(MARKER, TOKEN)
    assert restored == PACKED.sub("", before)


def test_a_name_that_looks_like_a_place_of_ours_moves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(render(named("packed-0-text-0.", f"second {TOKEN}")))
    before = path.read_text()
    scrub(path)
    after = path.read_text()
    assert PACKED.sub("", after) == PACKED.sub("", before).replace(TOKEN, MARKER)
    assert inside(after) == [text.replace(TOKEN, MARKER) for text in inside(before)]


def test_what_is_packed_is_unpacked_and_nothing_else_is() -> None:
    assert unpacked(packed("µ" * 1000)) == "µ" * 1000
    with pytest.raises(ValueError, match="no zlib stream"):
        unpacked("AAAA")
    with pytest.raises(ValueError, match="cut off"):
        unpacked(packed("a" * 4000)[:16])
    with pytest.raises(ValueError, match="larger than"):
        unpacked(packed("a" * (LARGEST + 1)))
