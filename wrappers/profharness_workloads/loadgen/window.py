"""The window of a level as client and server agree on it: lines in levels.jsonl, answers in
windows.jsonl.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any, Callable, Dict, List

from profharness_workloads.shared.protocol import VERSION, _read_from

# A first recording takes seconds to begin on a busy node. Where the server ends meanwhile, the
# harness ends this worker; of a foreign server, processes that have ended are not waited for.
LIMIT_S = 60.0
_LOOK_S = 0.005


class Windows:
    """Announces windows to the server.

    A server that profharness started (`managed`) answers each announcement once its marks and
    captures are set. Of any other server only the processes answer in which hooks listen; there may
    be none.
    """

    def __init__(self, folder: str, managed: bool):
        self._asked = os.path.join(folder, "levels.jsonl")
        self._answers = os.path.join(folder, "windows.jsonl")
        self._managed = managed

    def announce(
        self,
        kind: str,
        answer: str,
        point: str,
        still_wanted: Callable[[], None],
    ) -> bool:
        """Write `kind` (open, close) and wait for `answer`. Returns False when a process that
        should answer has not done so within LIMIT_S.
        """
        position = os.path.getsize(self._answers) if os.path.exists(self._answers) else 0
        line = json.dumps({"v": VERSION, "kind": kind, "id": point}, separators=(",", ":")) + "\n"
        with open(self._asked, "a", encoding="utf-8") as file:
            file.write(line)
        deadline = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline:
            if self._answered(position, answer, point):
                return True
            still_wanted()
            time.sleep(_LOOK_S)
        return False

    def _answered(self, position: int, kind: str, point: str) -> bool:
        answers = [
            record
            for record in self._records(position)
            if record.get("kind") == kind and record.get("id") == point
        ]
        if self._managed:
            return bool(answers)
        listening = {
            record.get("pid") for record in self._records(0) if record.get("kind") == "listening"
        }
        # a process that has ended, or that cannot be seen from here, is not waited for
        return {pid for pid in listening if os.path.exists("/proc/%s" % pid)} <= {
            record.get("pid") for record in answers
        }

    def _records(self, position: int) -> List[Dict[str, Any]]:
        text = _read_from(self._answers, position)
        records = []
        for line in text[: text.rfind(b"\n") + 1].splitlines():
            try:
                records.append(json.loads(line.decode("utf-8")))
            except ValueError:
                continue  # another writer's damage is no answer
        return records
