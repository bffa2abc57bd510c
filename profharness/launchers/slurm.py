"""Slurm: the harness has srun start itself, once per task. All ranks join one run, as under `srun
-n8 profharness run`.
"""

from __future__ import annotations

from collections.abc import Sequence

_OF_A_PLAN = ("--for-node", "--rocm-version")  # options that go with --dry-run, each with a value


def words(
    argv: Sequence[str], ranks: int, options: Sequence[str], *, is_command: bool
) -> tuple[str, ...]:
    """The srun line for a command line of profharness (`argv` without the program).

    What stands last wins, so the tasks start no more of them.
    """
    at = list(argv).index("--") if "--" in argv else len(argv)
    ours = _without_plan(argv[:at])
    return (
        "srun",
        f"--ntasks={ranks}",
        *options,
        *ours,
        "--launcher",
        "task",
        *(("--ranks", "1") if is_command else ()),
        *argv[at:],
    )


def _without_plan(words: Sequence[str]) -> list[str]:
    """The words without those that ask for a plan only: the tasks run."""
    left: list[str] = []
    before = ""
    for word in words:
        name = word.partition("=")[0]
        if before not in _OF_A_PLAN and name not in ("--dry-run", *_OF_A_PLAN):
            left.append(word)
        before = word
    return left
