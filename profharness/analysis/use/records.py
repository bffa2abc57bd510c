"""How well the device was used, as typed records (docs/metrics.md#device-use). Nothing is computed
here.
"""

from __future__ import annotations

import msgspec

from profharness.analysis.operators.records import KnownWork


class Roof(msgspec.Struct, frozen=True, kw_only=True):
    """One ceiling of a device, in FLOP/s of matrix work in the type `dtype`, or in B/s (`dtype` is
    empty). `source` is where it comes from.
    """

    value: float
    source: str
    dtype: str = ""


class UseRow(msgspec.Struct, frozen=True, kw_only=True):
    """Operators of one name (of one name, `shapes` and `dtypes` where these are given), or kernels
    of one name.

    `device_ns` is their device time, or where operators nested in them do their work the larger
    time of that, and `share` its share of all device time. `flops_per_s` and
    `bytes_per_s` are reached while their known work ran, `intensity` is FLOP per byte of the calls
    for which both are known. `peak_share`, `limiter` and `excess_ns` are those of hotspots by
    operator. None where not known.
    """

    name: str
    calls: int
    device_ns: int
    share: float
    shapes: str = ""
    dtypes: str = ""
    flops_per_s: float | None = None
    bytes_per_s: float | None = None
    intensity: float | None = None
    peak_share: float | None = None
    limiter: str | None = None
    excess_ns: float | None = None


class FilesRow(UseRow, frozen=True, kw_only=True):
    """The same over several files. `low_ns` and `high_ns` are the least and the most `device_ns` of
    one of the files that tell such rows at all; `files` counts those that have any. `fill` is that
    of kernels, as in hotspots.
    """

    low_ns: int
    high_ns: int
    files: int
    fill: float | None = None


class OperatorCounter(msgspec.Struct, frozen=True, kw_only=True):
    """One hardware counter over the kernels that operators of one name launched.

    `sum` is None for counters in per cent. Of the `dispatches`, `recorded` stood under their
    operator in the counter pass itself, `in_order` were paired one by one with a kernel of the
    pass with operators, and the rest got the mean of their kernel name.
    """

    operator: str
    counter: str
    unit: str
    dispatches: int
    recorded: int
    in_order: int
    sum: float | None
    mean: float


class DeviceUse(msgspec.Struct, frozen=True, kw_only=True):
    """The operators and kernels of one pass against the ceilings.

    `operators` are by name and `shapes` by name and inputs (empty where these are too many to be
    drawn), each with the most excess first, those without any by device time; `kernels` likewise.
    `outside_ns` is the device time that no operator launched. `needs` says what to record where
    no operator or kernel has a place under the ceilings.
    """

    pass_name: str | None = msgspec.field(default=None, name="pass")
    device_ns: int
    outside_ns: int
    roofs: tuple[Roof, ...] = ()
    bandwidth: Roof | None = None
    operators: tuple[UseRow, ...] = ()
    shapes: tuple[UseRow, ...] = ()
    kernels: tuple[UseRow, ...] = ()
    known: KnownWork | None = None
    counters: tuple[OperatorCounter, ...] = ()
    needs: str = ""


class UnknownWork(msgspec.Struct, frozen=True, kw_only=True):
    """Files of which no operator or kernel has a place under the ceilings: what to record for one
    (`needs`), how many they are, and the first one's name.
    """

    needs: str
    files: int
    first: str


class FilesUse(DeviceUse, frozen=True, kw_only=True):
    """The use of the devices of several `files`, ranks of one job: times and work are summed over
    them, and rows are `FilesRow`. `unknown` are the files that add no work.
    """

    files: int
    unknown: tuple[UnknownWork, ...] = ()
