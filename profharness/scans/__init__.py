"""Scans: each is one file here, or a member that an installed package adds (`contract` says what
one is).
"""

from __future__ import annotations

from typing import Protocol, cast

from profharness import families
from profharness.node.probe import Environment
from profharness.options.request import Request
from profharness.options.serving import SATURATION
from profharness.scans.contract import Scan

SCANS = ("particlenet", SATURATION)
"""The names by which users ask for a scan."""
KINDS = (
    "profharness.scans.command:CommandScan",
    "profharness.scans.settings_scan:SettingsScan",
    "profharness.scans.saturation:SaturationScan",
    "profharness.scans.triton:TritonScan",
    "profharness.scans.pinned:PinnedScan",
    "profharness.scans.batch:BatchScan",
)
"""The first that fits a request makes its scan."""
GROUP = "profharness.scans"
NEEDS = ("from_request",)


class _Kind(Protocol):
    def fits(self, request: Request) -> bool: ...
    def from_request(self, request: Request, environment: Environment) -> Scan: ...


def names() -> tuple[str, ...]:
    """The scans that a user can ask for: ours, then those of other packages."""
    return (*SCANS, *(name for name, _ in families.foreign(GROUP, NEEDS)))


def create(request: Request, environment: Environment) -> Scan:
    """The scan that the request names. Its settings were checked by `Request`."""
    if request.scan and request.scan not in SCANS:
        theirs = dict(families.foreign(GROUP, NEEDS))
        if request.scan in theirs:
            return cast("_Kind", theirs[request.scan]).from_request(request, environment)
    kinds = (cast("_Kind", families.load(name)) for name in KINDS)
    return next(kind for kind in kinds if kind.fits(request)).from_request(request, environment)


def foreign_names() -> tuple[str, ...]:
    """The entry points' names of those that other packages add."""
    return tuple(name for name, _ in families.foreign(GROUP, NEEDS))
