"""Blocks of equal size use the same memory again."""

from __future__ import annotations

import gc
import platform
import subprocess
import sys

import pytest

from profharness.readers.bytes.allocation import keep_freed_memory, without_collection

FAULTS = """
import resource, sys
from profharness.readers.bytes.allocation import keep_freed_memory
if sys.argv[1] == "keep":
    assert keep_freed_memory()
def block():
    return [bytes([number % 251]) * 3000 for number in range(3000)], bytearray(3 << 20)
block()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    block()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has these limits")
def test_pages_are_not_asked_for_again():
    faults = {
        way: int(
            subprocess.run(
                [sys.executable, "-c", FAULTS, way], capture_output=True, text=True, check=True
            ).stdout
        )
        for way in ("keep", "give")
    }
    assert faults["keep"] < faults["give"] / 2, faults


def test_asking_again_changes_nothing():
    assert keep_freed_memory() == keep_freed_memory()


@pytest.mark.parametrize("enabled", [True, False])
def test_a_pause_of_the_search_for_cycles_ends_as_it_began(*, enabled: bool) -> None:
    def failing() -> None:
        with without_collection():
            assert not gc.isenabled()
            raise ZeroDivisionError

    before = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        with pytest.raises(ZeroDivisionError):
            failing()
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if before else gc.disable)()
