"""What was read of a file is freed as soon as nobody holds it, without a collection of garbage."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

from profharness import readers
from tests.fakes.rocpd_files import write_rocpd
from tests.fakes.rocprofv3_program import program


def test_the_tables_of_a_database_are_freed_with_the_trace(tmp_path: Path) -> None:
    database = tmp_path / "1_results.db"
    write_rocpd(database, program(3, 20))
    gc.collect()
    gc.disable()
    try:
        trace = readers.read(database)
        kept = [weakref.ref(trace.strings), weakref.ref(trace.kernels)]
        assert len(trace.kernels) == 20
        del trace
        assert [one() for one in kept] == [None, None]
    finally:
        gc.enable()
