from __future__ import annotations

import numpy as np

from profharness.readers.rocprofv3.tables import _product
from profharness.trace.columns.table import NULL


def test_workgroups_beyond_a_column_are_not_known() -> None:
    counts = [np.array([2**32 - 1, 3, NULL]), np.array([2**32 - 1, 4, 5]), np.array([2**20, 5, 1])]
    assert _product(counts).tolist() == [NULL, 60, NULL]
