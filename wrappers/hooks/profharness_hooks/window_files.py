"""The files that the windows of a controller have left: their names, which of them only stand in
for the window that was asked for, and what the hello says of them.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from profharness_hooks.process import Process
    from profharness_hooks.windows import Window


class WindowFiles:
    """Keeps or removes the files of ended windows. Methods raise OSError."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._count = 0
        self._early: list[str] = []

    def next_path(self) -> str:
        """Where the next window goes, in this process's folder of the torch layer."""
        folder = self._process.settings.folder("torch")
        name = "trace-%d%s.json" % (os.getpid(), "-%d" % self._count if self._count else "")
        return os.path.join(folder, name)

    def keep(self, window: Window, *, early: bool) -> int:
        """Export an ended window and return its number of events; one without any event leaves no
        file. `early`: the file goes once the asked window is on disk.
        """
        events = window.export()
        if events:
            self._count += 1
            self._process.hello.add("windows", os.path.basename(window.path))
            if early:
                self._early.append(window.path)
        else:
            _remove(window.path)
        self._process.hello.update(window="exported" if self._count else "nothing recorded")
        return events

    def replace_later(self, path: str) -> None:
        """Count a kept file among those that go once the asked window is on disk."""
        if path not in self._early:
            self._early.append(path)

    def remove_early(self) -> None:
        """The asked window is on disk: remove what stood in for it."""
        for path in self._early:
            _remove(path)
            self._process.hello.facts["windows"].remove(os.path.basename(path))
        self._early = []
        self._process.hello.update()


def _remove(path: str) -> None:
    for name in (path, path + ".profharness.json"):
        try:
            os.remove(name)
        except FileNotFoundError:
            pass
