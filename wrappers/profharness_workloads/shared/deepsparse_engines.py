"""Whether this interpreter has a deepsparse that can run here, and a sentence where it has none.

deepsparse is at the end of its life: 1.8.0 is the last release with an engine, for Python 3.8 to
3.11 and CPUs with AVX2, AVX-512 or their like on ARM; 1.9.0 is an empty package.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from typing import Any, Tuple

from profharness_workloads.shared.protocol import plain_reason

LAST = "1.8.0"
FIRST_PYTHON_WITHOUT = (3, 12)


def found() -> Tuple[Any, str]:
    """The package, or None and why there is none to use."""
    if importlib.util.find_spec("deepsparse") is None:
        return None, _absent()
    # each engine that is made would be reported to Google Analytics, from a thread of its own
    os.environ.setdefault("NM_DISABLE_ANALYTICS", "1")
    try:
        package = importlib.import_module("deepsparse")
    except Exception as error:  # its files for this CPU, or a package that it needs
        reason = plain_reason(error)
        if isinstance(error, OSError):
            return None, "deepsparse refuses this CPU: %s" % _own_words(reason)
        return None, "deepsparse cannot be imported by %s: %s" % (sys.executable, reason)
    if not hasattr(package, "Engine"):
        return None, _empty(version_of(package))
    return package, ""


def _absent() -> str:
    installed = _installed()
    if installed:
        return _empty(installed)
    if sys.version_info[:2] >= FIRST_PYTHON_WITHOUT:
        return "%s is Python %d.%d, and no deepsparse runs on Python 3.12 or newer" % (
            sys.executable,
            *sys.version_info[:2],
        )
    return "%s has no deepsparse" % sys.executable


def _empty(version: str) -> str:
    return "%s has deepsparse %s, which is an empty package: %s is the last one with an engine" % (
        sys.executable,
        version,
        LAST,
    )


def version_of(package: Any) -> str:
    """As the package says it, else as it was installed."""
    return str(getattr(package, "__version__", "") or _installed())


def _installed() -> str:
    try:
        from importlib.metadata import version  # Python 3.8 on

        return version("deepsparse")
    except Exception:  # not there, or a broken metadata folder
        return ""


def _own_words(reason: str) -> str:
    """The reason without the company's name before it."""
    return reason.replace("Neural Magic: ", "", 1)
