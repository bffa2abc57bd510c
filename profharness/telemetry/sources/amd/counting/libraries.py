"""Where rocprofiler-sdk and the HSA runtime of the same ROCm lie; looked up without loading
anything.

A ROCm tree holds both in lib/; AMD's Python wheels hold them in `_rocm_sdk_core/lib`. The number
behind `.so` is the SDK's major version.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from typing import NamedTuple

SDK_NAMES = ("librocprofiler-sdk.so.1", "librocprofiler-sdk.so.0")
HSA_NAME = "libhsa-runtime64.so.1"
WHEEL = "_rocm_sdk_core"
ROOT = "/opt/rocm"


class Libraries(NamedTuple):
    """Absolute paths of the two libraries of one ROCm."""

    sdk: str
    hsa: str


def find_libraries() -> Libraries | str:
    """The first ROCm that has both, or why there is none: ROCM_PATH, the wheels of this Python and
    of the active environment, /opt/rocm and the releases in it.
    """
    seen: list[str] = []
    for root in dict.fromkeys(_roots()):
        for folder in (f"{root}/lib", f"{root}/lib64"):
            sdk = next((name for name in SDK_NAMES if _is_there(f"{folder}/{name}")), "")
            if not sdk:
                continue
            if _is_there(f"{folder}/{HSA_NAME}"):
                return Libraries(
                    os.path.abspath(f"{folder}/{sdk}"),  # noqa: PTH100  no pathlib in the sampler
                    os.path.abspath(f"{folder}/{HSA_NAME}"),  # noqa: PTH100  as above
                )
            seen.append(folder)
    if seen:
        return f"{seen[0]} has rocprofiler-sdk, but no {HSA_NAME} beside it"
    return (
        "rocprofiler-sdk (librocprofiler-sdk.so) is not here: it comes with ROCm 6.4 and newer; "
        "set ROCM_PATH where ROCm is elsewhere"
    )


def _roots() -> Iterator[str]:
    for name in ("ROCM_PATH", "ROCM_HOME"):
        if root := os.environ.get(name):
            yield root
    environments = [
        os.environ[name] for name in ("VIRTUAL_ENV", "CONDA_PREFIX") if os.environ.get(name)
    ]
    for packages in (*sys.path, *(one for root in environments for one in _site_packages(root))):
        yield from (f"{packages}/{name}" for name in _listed(packages) if name.startswith(WHEEL))
    yield ROOT
    yield f"{ROOT}/core"
    yield from (f"{ROOT}/{name}" for name in _newest_first(ROOT) if name.startswith("core-"))
    yield from (f"/opt/{name}" for name in _newest_first("/opt") if name.startswith("rocm-"))


def _newest_first(folder: str) -> list[str]:
    """By the numbers in the names, since 10.0 is newer than 7.2."""
    return sorted(
        _listed(folder),
        key=lambda name: [int(one) for one in re.findall(r"\d+", name)],
        reverse=True,
    )


def _site_packages(root: str) -> list[str]:
    return [
        f"{root}/lib/{name}/site-packages"
        for name in _listed(f"{root}/lib")
        if name.startswith("python3")
    ]


def _listed(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - no pathlib in the sampler
    except OSError:
        return []


def _is_there(path: str) -> bool:
    return os.path.exists(path)  # noqa: PTH110 - no pathlib in the sampler
