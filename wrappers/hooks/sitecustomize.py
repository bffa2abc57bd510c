"""Loaded by every Python process of a profiled command, since this folder stands on PYTHONPATH.

Arms the hooks where the PROFHARNESS_* variables ask for them, steps behind everything else on
sys.path, and hands over to the user's own sitecustomize, if there is one.
"""

import os
import sys


def _ours(entry: str, folders: "tuple[str, str]") -> bool:
    return os.path.abspath(entry) in folders


def _arm() -> "list[str]":
    folder = os.path.dirname(os.path.abspath(__file__))
    folders = (folder, os.path.dirname(folder))
    try:
        # an older Python, most often that of a tool of the node, runs as without us
        if sys.version_info >= (3, 8) and os.environ.get("PROFHARNESS_HOOKS_DIR"):
            from profharness_hooks import process

            process.install("sitecustomize")
    except Exception as error:  # whatever is wrong with the hooks, the workload starts
        os.write(
            2, ("profharness: the hooks did not load: %r\n" % (error,)).encode("utf-8", "replace")
        )
    # last, so that no file of ours hides one of the user's, but still there for children started
    # from sys.path
    removed = [entry for entry in sys.path if _ours(entry, folders)]
    sys.path[:] = [entry for entry in sys.path if not _ours(entry, folders)]
    return removed


_entries = _arm()
# the same import that `site` would have done; its errors are reported by `site`, as without us
sys.modules.pop("sitecustomize", None)
try:
    import sitecustomize  # noqa: F401 - the user's own
finally:
    sys.path.extend(_entries)
