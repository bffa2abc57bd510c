"""Arrow's threads while files are read: none knows a block of a file any more when reading has
ended, and a program's other work with Arrow has as many of them as before.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from profharness.readers.bytes.arrow_bytes import ArrowBytes
from profharness.rundir.blocks import Blocks


@pytest.fixture
def three_threads():
    before = pa.cpu_count()
    pa.set_cpu_count(3)
    yield
    pa.set_cpu_count(before)


def supply_of(folder: Path, name: str) -> ArrowBytes:
    path = folder / name
    path.write_bytes(b"a\n1\n")
    return ArrowBytes(Blocks(path))


@pytest.mark.usefixtures("three_threads")
def test_arrow_has_its_threads_again_when_the_last_of_several_files_was_read(tmp_path):
    first, second = supply_of(tmp_path, "first"), supply_of(tmp_path, "second")
    with first:
        second.__enter__()
        assert pa.cpu_count() == 1
    assert pa.cpu_count() == 1  # the second is still read
    second.__exit__()
    assert pa.cpu_count() == 3


@pytest.mark.usefixtures("three_threads")
def test_nothing_more_is_given_after_an_error_and_the_threads_are_there_again(tmp_path):
    supply = supply_of(tmp_path, "damaged")
    stream = supply.stream()
    with pytest.raises(ValueError, match="damaged"), supply:
        raise ValueError("damaged")
    assert stream.read() == b""
    assert pa.cpu_count() == 3
