"""What the regions and samples of a rocpd database are, by their category: rocprofv3 writes calls,
markers and events of the kernel driver; rocprof-sys functions of the program and samples, too.
"""

from __future__ import annotations

from typing import Literal, get_args

from profharness.readers.rocprofv3.tables import MARKER, is_runtime

Role = Literal["call", "marker", "driver", "function", "sampled"]
ROLES: tuple[Role, ...] = get_args(Role)

# rocprof-sys's categories of what ran on the host; our other reader of its files has them as
# operators, too
_FUNCTIONS = frozenset({"host", "user", "python", "mpi", "ompt", "kokkos", "pthread", "causal"})


def role_of(domain: str, *, instant: bool) -> Role:
    """What records of a domain (`tables.domain_of`) are. An instant that is of no runtime is a
    sample: of a call stack, a device, or the process.
    """
    if domain == MARKER:
        return "marker"
    if domain.startswith("kfd"):
        return "driver"
    if domain.endswith("_sampling") or (instant and not is_runtime(domain)):
        return "sampled"
    return "function" if domain in _FUNCTIONS else "call"
