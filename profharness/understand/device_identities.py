"""Which devices of its node a process numbered, where variables hid some from it.

A trace of torch's profiler names devices by their numbers alone, and telemetry has the node's: a
process that sees the fourth device only calls it 0.
"""

from __future__ import annotations

from dataclasses import replace

from profharness.node.masks import visible
from profharness.rundir.manifest import Artifact, Hello, Manifest
from profharness.trace.model import Trace


def hidden_from(manifest: Manifest, artifact: Artifact) -> dict[str, str]:
    """The identity of each number under which the process of this file knows a device. Empty where
    nothing hides devices from it, or it cannot be told what: where the job is denied devices of the
    node, the process counts among others than the node's record has.
    """
    process = next((one for one in manifest.processes if _wrote(one, artifact)), None)
    node = next((one for one in manifest.nodes if one.host == artifact.host), None)
    if process is None or node is None or not process.masks or node.hidden_devices:
        return {}
    devices = visible(process.masks, node.devices) or ()
    return {str(number): device.identity for number, device in enumerate(devices)}


def identified(trace: Trace, identities: dict[str, str]) -> Trace:
    """The trace with these identities, by number, of devices whose tool gave none."""
    if not identities:
        return trace
    devices = tuple(
        device if device.identity else replace(device, identity=identities.get(device.index, ""))
        for device in trace.devices
    )
    return replace(trace, devices=devices)


def _wrote(process: Hello, artifact: Artifact) -> bool:
    if process.host != artifact.host:
        return False
    if artifact.pid is not None:
        return process.pid == artifact.pid
    return artifact.rank is not None and process.rank == artifact.rank
