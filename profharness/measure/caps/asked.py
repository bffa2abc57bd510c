"""Whose caps a request changes on this node. Looks only."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from profharness.errors import Unavailable
from profharness.measure.caps import asking
from profharness.measure.caps.planning import CapPlan, plan_caps
from profharness.rundir.executions.axes import POWER_CAP
from profharness.telemetry.caps.ways import switched_off


def asked_caps(axes: Mapping[str, Sequence[str]]) -> CapPlan | None:
    """None for a scan without the axis. Raises Unavailable and UsageError as `plan_caps` does."""
    if POWER_CAP not in axes:
        return None
    if why := switched_off():
        raise Unavailable(f"--scan {POWER_CAP}: {why}", "leave the axis out, or ask why it is set")
    found = asking.found(os.environ.get("PROFHARNESS_SYSFS", "/sys"))
    return plan_caps(found, [float(one) for one in axes[POWER_CAP]], os.environ)
