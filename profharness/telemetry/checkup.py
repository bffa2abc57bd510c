"""Which telemetry sources work on this node, and why the others do not: for `doctor`.

Sources that call a vendor's library are opened in a child process, because a library that does not
fit its driver may abort the process that calls it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence

from profharness.telemetry.sources import Missing, Source, Target, open_families
from profharness.telemetry.sources.amd.counting.libraries import find_libraries
from profharness.telemetry.sources.amd.counting.preflight import preflight
from profharness.telemetry.sources.amd.counting.source import NAME as COUNTERS
from profharness.telemetry.sources.amd.devices import find_dies, why_none
from profharness.telemetry.sources.host.cgroup import CgroupSource
from profharness.telemetry.sources.host.file_systems import LustreSource, NfsSource
from profharness.telemetry.sources.host.network import NetworkSource
from profharness.telemetry.sources.host.node import NodeSource
from profharness.telemetry.sources.host.pm_counters import PmCountersSource
from profharness.telemetry.sources.host.pressure import PressureSource
from profharness.telemetry.sources.host.rapl import RaplSource
from profharness.telemetry.sources.host.rdma import RdmaSource
from profharness.telemetry.sources.host.slingshot import SlingshotSource

CHECK_S = 20.0
LIBRARIES = ("amdsmi", "nvml")  # families that call a vendor's library


def source_states(sysfs: str = "/sys") -> tuple[tuple[str, str], ...]:
    """Name of each source and why it is missing; an empty reason means that it works."""
    sources: dict[str, Source] = {
        "cpu": NodeSource(),
        "cgroup": CgroupSource(os.getpid()),
        "pressure": PressureSource(),
        "rapl": RaplSource(sysfs),
        "pm_counters": PmCountersSource(sysfs),
        "network": NetworkSource(),
        "rdma": RdmaSource(sysfs),
        "slingshot": SlingshotSource(sysfs),
        "lustre": LustreSource(sysfs),
        "nfs": NfsSource(),
    }
    states = [(name, _why_one(source)) for name, source in sources.items()]
    states.append(("amd", why_missing("amd", sysfs)))
    states.append((COUNTERS, why_no_counters(sysfs)))
    return (*states, *((name, _why_in_child(name, sysfs)) for name in LIBRARIES))


def why_no_counters(sysfs: str = "/sys") -> str:
    """What speaks against hardware counters of whole devices, by looking only: to start them would
    lock the devices.
    """
    dies = find_dies(sysfs)
    if not dies:
        return why_none(sysfs)
    found = preflight(dies, sysfs)
    if found.level == "none":
        return found.why
    libraries = find_libraries()
    return libraries if isinstance(libraries, str) else found.why


def why_missing(family: str, sysfs: str = "/sys") -> str:
    """Why a whole family gives nothing in this process; empty where it gives something."""
    sources, missing = open_families((family,), Target(os.getpid(), "", 10.0, sysfs))
    return _why(any(source.columns for source in sources), missing)


def _why_one(source: Source) -> str:
    missing = source.probe()
    return _why(bool(source.columns), missing)


def _why(works: bool, missing: Sequence[Missing]) -> str:
    return (
        ""
        if works
        else "; ".join(dict.fromkeys(absent.why for absent in missing)) or "it has no values here"
    )


def _why_in_child(family: str, sysfs: str) -> str:
    """Why the source is missing, found out in a child process, which may die of what it calls."""
    try:
        done = subprocess.run(
            check_command(family, sysfs),
            capture_output=True,
            timeout=CHECK_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return f"its library did not answer within {CHECK_S:g} s"
    except OSError as error:
        return f"the check could not be started ({error.strerror})"
    if done.returncode < 0:
        return (
            "its library ended the checking process "
            f"({signal.Signals(-done.returncode).name}): it does not fit the driver"
        )
    try:
        return str(json.loads(done.stdout.splitlines()[-1])["why"])
    except (ValueError, IndexError, KeyError, TypeError):
        words = done.stderr.decode(errors="replace").strip().splitlines()
        return f"the check failed: {words[-1] if words else f'status {done.returncode}'}"


def check_command(family: str, sysfs: str = "/sys") -> list[str]:
    """How one family is checked in a process of its own, from wherever this package lies."""
    here = os.path.abspath(__file__)  # noqa: PTH100  runs in the sampler too, without pathlib
    package = os.path.dirname(os.path.dirname(here))  # noqa: PTH120  no pathlib in the sampler
    root = os.path.dirname(package)  # noqa: PTH120  no pathlib in the sampler
    code = (
        f"import sys; sys.path.insert(0, {root!r}); from profharness.telemetry.checkup "
        "import check_main; sys.exit(check_main(sys.argv[1:]))"
    )
    return [sys.executable, "-c", code, family, sysfs]


def check_main(arguments: Sequence[str]) -> int:
    """The child's side: prints one line of JSON. Whatever a library prints besides goes to
    stderr.
    """
    family, sysfs = arguments
    answers = os.dup(1)
    os.dup2(2, 1)
    why = why_missing(family, sysfs)
    os.write(answers, json.dumps({"why": why}).encode() + b"\n")
    return 0
