"""The host's own telemetry: the workload's process tree, the node, the control group, pressure,
network, file systems, power of CPUs and node.
"""

from __future__ import annotations

import os

from profharness.telemetry.sources import Source, Target
from profharness.telemetry.sources.host.cgroup import CgroupSource
from profharness.telemetry.sources.host.file_systems import (
    LustreSource,
    NfsSource,
    TreeFilesSource,
)
from profharness.telemetry.sources.host.network import NetworkSource
from profharness.telemetry.sources.host.node import NodeMemorySource, NodeSource
from profharness.telemetry.sources.host.pm_counters import PmCountersSource
from profharness.telemetry.sources.host.pressure import PressureSource
from profharness.telemetry.sources.host.process_tree import ProcessTree
from profharness.telemetry.sources.host.rapl import RaplSource
from profharness.telemetry.sources.host.rdma import RdmaSource
from profharness.telemetry.sources.host.slingshot import SlingshotSource
from profharness.telemetry.sources.host.tree import TreeMemorySource, TreeSource, TreeWaitSource


def open_sources(target: Target) -> tuple[Source, ...]:
    """The cheapest and most wanted first: values of one row are read in this order."""
    tree = ProcessTree(target.roots_file)
    return (
        TreeSource(tree),
        TreeMemorySource(tree),
        NodeSource(),
        NodeMemorySource(),
        PressureSource(),
        CgroupSource(target.parent_pid or os.getpid()),
        NetworkSource(),
        RdmaSource(target.sysfs),
        SlingshotSource(target.sysfs),
        TreeFilesSource(tree),
        LustreSource(target.sysfs),
        NfsSource(),
        TreeWaitSource(tree),
        RaplSource(target.sysfs),
        PmCountersSource(target.sysfs),
    )
