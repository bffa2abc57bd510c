"""Slurm: the harness has srun start itself, once per task. All ranks join one run, as under `srun
-n8 profharness run`.
"""

from __future__ import annotations

from collections.abc import Sequence


def words(
    argv: Sequence[str], ranks: int, options: Sequence[str], *, is_command: bool
) -> tuple[str, ...]:
    """The srun line for a command line of profharness (`argv` without the program).

    What stands last wins, so the tasks start no more of them.
    """
    at = list(argv).index("--") if "--" in argv else len(argv)
    ours = [word for word in argv[:at] if word != "--dry-run"]
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
