"""Hardware counters of calls alone: the process of a replay under rocprofv3, as `wrap` starts a
command, one execution for each group of counters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from profharness.findings import Finding
from profharness.measure.pass_records import FindSecrets
from profharness.measure.replay.process import Answers, Asked, take, worker_words, write_plan
from profharness.measure.wrap import execute, plan_wrap
from profharness.options.request import Request
from profharness.options.settings import COMMAND_LINE, from_mapping
from profharness.trace.calls.plan import CallTask, ReplayLine

CALLS = 3  # of each, in one execution
LAYER = "rocprofv3"


@dataclass(frozen=True)
class Counted:
    """One execution: the tool's files, what there is to say, and when each call ran."""

    group: str
    files: tuple[Path, ...]
    findings: tuple[Finding, ...]
    lines: dict[int, ReplayLine]


def request_of(group: str, words: Sequence[str], python: str, output: Path) -> Request:
    """The request of one execution. Raises UsageError for counters in a wrong form."""
    settings = {
        "profile": LAYER,
        "pmc": group,
        "command": tuple(words),
        "output": str(output),
        "yes": True,
        **({"python": python} if python else {}),
    }
    return from_mapping(settings, COMMAND_LINE)


def count(
    tasks: tuple[CallTask, ...],
    asked: Asked,
    groups: Sequence[str],
    root: Path,
    find_secrets: FindSecrets,
) -> list[Counted]:
    """Run the calls once for each group of counters, below the folder `root`. Raises Unavailable
    without the tool, and UsageError for counters that it cannot take at once.
    """
    done = []
    for number, group in enumerate(groups, 1):
        folder = root / f"pmc{number}"
        folder.mkdir(parents=True)
        results = folder / "results.jsonl"
        words = worker_words(asked, write_plan(tasks, asked, results, CALLS))
        ended = execute(plan_wrap(request_of(group, words, asked.python, folder)), find_secrets)
        answers = Answers()
        take(results, answers)
        files = tuple(folder / one.path for one in ended.artifacts if not one.aside)
        done.append(Counted(group, files, ended.findings, answers.results))
    return done


def check(groups: Sequence[str], asked: Asked, root: Path) -> None:
    """Raises what `count` would raise, before anything is timed."""
    for group in groups:
        words = worker_words(asked, root / "plan.json")
        plan_wrap(request_of(group, words, asked.python, root))
