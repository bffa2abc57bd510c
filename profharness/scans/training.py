"""The training workloads that run by name: ordinary scripts under
wrappers/profharness_workloads/training, profiled as commands.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from profharness.wrappers_path import wrappers_dir

# name on the command line, script
TRAINING = {"train-cifar100": "train_cifar100.py", "finetune-gpt-neo": "finetune_gpt_neo.py"}


def command(name: str, words: Sequence[str], python: str = "") -> tuple[str, ...]:
    """What runs this workload with the user's own words behind its name."""
    return (
        python or sys.executable,
        str(wrappers_dir() / "profharness_workloads" / "training" / TRAINING[name]),
        *words,
    )
