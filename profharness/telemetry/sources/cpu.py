"""The host's own telemetry: the workload's process tree, the node, the control group, pressure, power of the CPUs."""

from __future__ import annotations

import os

from profharness.telemetry.sources import Source, Target
from profharness.telemetry.sources.cgroup import CgroupSource
from profharness.telemetry.sources.node import NodeSource
from profharness.telemetry.sources.pressure import PressureSource
from profharness.telemetry.sources.process_tree import ProcessTree
from profharness.telemetry.sources.rapl import RaplSource
from profharness.telemetry.sources.tree import TreeMemorySource, TreeSource, TreeWaitSource


def open_sources(target: Target) -> tuple[Source, ...]:
    """The cheapest and most wanted first: values of one row are read in this order."""
    tree = ProcessTree(target.roots_file)
    return (TreeSource(tree), TreeMemorySource(tree), NodeSource(), PressureSource(), CgroupSource(target.parent_pid or os.getpid()),
            TreeWaitSource(tree), RaplSource(target.sysfs))
