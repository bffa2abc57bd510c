"""What `profharness calibrate` measured on a device: ceilings that a real program reached there,
kept per device and software set.

Files live in the cache folder, one per device and software set, newest measurement only; a run
keeps a copy of those of its devices, so that it can be read elsewhere with the same ceilings.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import msgspec

from profharness.errors import InputError
from profharness.rundir.foreign.border import reading
from profharness.rundir.foreign.inside import Inside
from profharness.rundir.foreign.limits import LINES_BYTES
from profharness.rundir.foreign.records import check_numbers
from profharness.rundir.foreign.small_files import read_file

SCHEMA = 1
COPY_NAME = "calibration.json"
COPY = "copy"
"""Among figures of a calibration, which else are types of products."""


class Doubt(msgspec.Struct, frozen=True, kw_only=True):
    """Why a figure of a calibration is not believed: that of a type of `gemm_flops`, or `copy`."""

    figure: str
    why: str


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """One device under one software set. `aliases` are further names that tools have for it.

    `gemm_flops` is FLOP/s of a large matrix product by type of its operands (fp32, tf32, bf16,
    ...), `copy_bytes_per_s` counts bytes read and bytes written, `launch_ns` is host time per
    launch of an empty kernel (on a CPU: per call of an operator on one element), `round_trip_ns`
    from launch to the return of a synchronisation. `gemm_power_w` is what the package drew while
    the fastest product ran on this device alone, `idle_power_w` what it drew just before,
    `power_scope` what that covers. `compute_units` are the cores used where the device is a CPU.
    `notes` says what was left out and why. `rounds` are what each round of a figure reached, and
    `watched` what else was seen meanwhile (docs/metrics.md#calibration); both are empty in older
    files. What is in `doubts` is no ceiling.
    """

    schema: int = SCHEMA
    created: str
    host: str = ""
    kind: str
    name: str
    aliases: tuple[str, ...] = ()
    architecture: str = ""
    compute_units: int | None = None
    software: dict[str, str] = {}
    gemm_flops: dict[str, float] = {}
    copy_bytes_per_s: float | None = None
    launch_ns: float | None = None
    round_trip_ns: float | None = None
    gemm_power_w: float | None = None
    idle_power_w: float | None = None
    power_scope: str = ""
    notes: tuple[str, ...] = ()
    rounds: dict[str, tuple[float, ...]] = {}
    watched: dict[str, float] = {}
    doubts: tuple[Doubt, ...] = ()

    def doubt(self, figure: str) -> str:
        """Why a figure is not believed; empty where it is."""
        return next((doubt.why for doubt in self.doubts if doubt.figure == figure), "")

    def believed(self, figure: str) -> float | None:
        """The rate of a type of product, or of `copy`, in FLOP/s or B/s; None where it was not
        measured or is not believed.
        """
        return None if self.doubt(figure) else self.rate(figure)

    def rate(self, figure: str) -> float | None:
        """The rate that was measured, believed or not."""
        return self.copy_bytes_per_s if figure == COPY else self.gemm_flops.get(figure)

    def doubted(self, figure: str, why: str) -> Calibration:
        """The same without belief in a figure."""
        return msgspec.structs.replace(self, doubts=(*self.doubts, Doubt(figure=figure, why=why)))


def cache_dir() -> Path:
    """`PROFHARNESS_CACHE`, else `profharness` in the user's cache folder."""
    base = (
        os.environ.get("PROFHARNESS_CACHE")
        or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "profharness"
    )
    return Path(base)


def path_of(calibration: Calibration, folder: Path | None = None) -> Path:
    """Where this device and software set have their file."""
    words = re.sub(r"[^A-Za-z0-9]+", "-", calibration.name).strip("-").lower() or calibration.kind
    own = "\0".join(
        (
            calibration.name,
            calibration.architecture,
            str(calibration.compute_units),
            *(f"{name}={version}" for name, version in sorted(calibration.software.items())),
        )
    )
    return _folder(folder) / f"{words}-{hashlib.sha256(own.encode()).hexdigest()[:10]}.json"


def _folder(folder: Path | None) -> Path:
    return (cache_dir() if folder is None else folder) / "calibration"


def kept_of(calibration: Calibration, folder: Path | None = None) -> Calibration | None:
    """The one that is kept of the same device and software; None without."""
    path = path_of(calibration, folder)
    return next((one for one in stored(folder) if path_of(one, folder) == path), None)


def store(calibration: Calibration, folder: Path | None = None) -> Path:
    """Write it, in place of an earlier one of the same device and software; the file's path."""
    path = path_of(calibration, folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.part")
    part.write_bytes(msgspec.json.format(msgspec.json.encode(calibration), indent=1) + b"\n")
    part.replace(path)
    return path


def stored(folder: Path | None = None) -> tuple[Calibration, ...]:
    """All that the cache holds, newest first. What cannot be read counts as not there, the cache of
    another user's home included.
    """
    found = []
    try:
        paths = sorted(_folder(folder).glob("*.json"))
    except OSError:
        return ()
    for path in paths:
        try:
            found.append(msgspec.json.decode(path.read_bytes(), type=Calibration))
        except (msgspec.DecodeError, OSError):
            continue
    return tuple(sorted(found, key=lambda one: one.created, reverse=True))


def for_run(root: Path) -> tuple[Calibration, ...]:
    """Those that a run keeps, then those of this machine's cache. Raises InputError for a damaged
    copy.
    """
    return (*of_run(root), *stored())


def of_run(root: Path) -> tuple[Calibration, ...]:
    """Those that a run keeps. Raises InputError for a damaged copy."""
    copy = Inside(root).require(root / COPY_NAME)
    with reading(copy):
        try:
            data = read_file(copy, LINES_BYTES)
        except FileNotFoundError:
            return ()
    return decode(data, str(copy))


def lacking(kept: Iterable[Calibration], others: Iterable[Calibration]) -> tuple[Calibration, ...]:
    """Those of `others` whose device, size and software `kept` has none of."""
    names = {path_of(one).name for one in kept}
    return tuple(one for one in others if path_of(one).name not in names)


def relevant(
    calibrations: Iterable[Calibration], names: Collection[str]
) -> tuple[Calibration, ...]:
    """Those of devices that go by one of these names."""
    return tuple(one for one in calibrations if not {one.name, *one.aliases}.isdisjoint(names))


def encode(calibrations: Sequence[Calibration]) -> bytes:
    """The copy that a run keeps."""
    return msgspec.json.format(msgspec.json.encode(calibrations), indent=1) + b"\n"


def decode(data: bytes, path: str) -> tuple[Calibration, ...]:
    """Read a run's copy. Raises InputError, naming `path`, for damage."""
    try:
        kept = msgspec.json.decode(data, type=tuple[Calibration, ...])
        check_numbers(kept, path)
        return kept
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(
            f"{path}: not a readable calibration ({error})", "delete it, or calibrate again"
        ) from error


def of_device(
    calibrations: Iterable[Calibration],
    *,
    name: str,
    compute_units: int | None = None,
    software: dict[str, str] | None = None,
) -> Calibration | None:
    """The calibration of a device by its name and size, of the same software where there is one,
    else the newest of any.

    Software agrees where no version that both name differs.
    """
    fitting = [
        one
        for one in calibrations
        if name
        and name in (one.name, *one.aliases)
        and (compute_units is None or one.compute_units in (None, compute_units))
    ]
    alike = [
        one
        for one in fitting
        if software
        and all(software.get(key, version) == version for key, version in one.software.items())
    ]
    newest = sorted(alike or fitting, key=lambda one: one.created, reverse=True)
    return newest[0] if newest else None
