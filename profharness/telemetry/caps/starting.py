"""How the process that reads and sets caps is started; alone, since the sampler needs it too and
shall start quickly.
"""

from __future__ import annotations

import os
import sys


def command(*words: str) -> list[str]:
    """How an act is started, from wherever this package lies."""
    here = os.path.abspath(__file__)  # noqa: PTH100  no pathlib in the sampler
    root = here.removesuffix("/profharness/telemetry/caps/starting.py")
    code = (
        f"import sys; sys.path.insert(0, {root!r}); from profharness.telemetry.caps.child "
        "import main; sys.exit(main(sys.argv[1:]))"
    )
    return [sys.executable, "-c", code, *words]
