"""Tables as pandas frames, for notebooks and scripts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from profharness.report.table import Table

if TYPE_CHECKING:
    import pandas as pd


def frame_of(table: Table) -> pd.DataFrame:
    """The values below the columns' keys, one row per row of the table.

    Integers stay exact: int64, or pandas's Int64 where some are missing. Other numbers are float64
    with NaN for what is missing, as are columns without any value. `attrs["units"]` has the units
    of the columns whose name does not tell it.
    """
    import pandas as pd

    frame = pd.DataFrame(
        {
            column.key: _typed([row[at].value for row in table.rows])
            for at, column in enumerate(table.columns)
        }
    )
    frame.attrs["units"] = {column.key: column.unit for column in table.columns if column.unit}
    return frame


def _typed(values: Sequence[object]) -> Any:  # what pandas takes as a column
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int}:
        missing = np.array([value is None for value in values])
        whole = np.array([0 if value is None else value for value in values], np.int64)
        return integers(whole, missing)
    if kinds <= {int, float}:
        return np.array([np.nan if value is None else value for value in values], np.float64)
    return list(values)


def integers(whole: Any, missing: Any) -> Any:
    """An int column, and pandas's nullable one where the mask says that some are missing."""
    import pandas as pd

    return pd.arrays.IntegerArray(whole, missing) if missing.any() else whole
