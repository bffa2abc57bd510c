"""Where the other side of the process border lies: in a checkout beside the package, in a wheel
inside it.
"""

from __future__ import annotations

from pathlib import Path

from profharness.errors import Unavailable


def wrappers_dir() -> Path:
    """The folder with probe.py, hooks/ and profharness_workloads/.

    Raises Unavailable when the installation lacks it.
    """
    package = Path(__file__).resolve().parent.parent
    for place in (package / "_wrappers", package.parent / "wrappers"):
        if (place / "probe.py").is_file():
            return place
    raise Unavailable(
        "this installation of profharness lacks its wrappers folder",
        "reinstall profharness from its wheel or checkout",
    )
