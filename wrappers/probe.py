"""Print facts of the node that it runs on, as one JSON object: `python probe.py [--frameworks]
[--sysfs ROOT]`.

Runs through the same launcher and container as the workload, under the workload's Python (3.8 on,
standard library). Imports no framework; with --frameworks a child process does, and its answer is
added as "frameworks". What cannot be found is empty or null, never guessed.
"""

from __future__ import annotations

import json
import os
import platform
import re
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # not there under python -I
import probe_access
import probe_devices
import probe_profilers
import probe_tools
from probe_devices import read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List


PACKAGES = (
    "torch",
    "torchvision",
    "onnxruntime",
    "onnxruntime-gpu",
    "onnxruntime-rocm",
    "onnxruntime-migraphx",
    "onnxruntime-training",
    "onnx",
    "tensorflow",
    "tensorflow-cpu",
    "tensorflow-rocm",
    "numpy",
    "triton",
    "pytorch-triton-rocm",
    "nvidia-pytriton",
    "tritonclient",
    "transformers",
    "datasets",
    "amdsmi",
    "nvidia-ml-py",
)
CLOCKS = ("CLOCK_REALTIME", "CLOCK_MONOTONIC", "CLOCK_MONOTONIC_RAW", "CLOCK_BOOTTIME")
CHILD = """
import json, sys
facts = {}
try:
    import torch
    facts["torch"] = {
        "version": torch.__version__,
        "cuda": torch.version.cuda,
        "hip": getattr(torch.version, "hip", None),
        "devices": [],
    }
    for i in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
        p = torch.cuda.get_device_properties(i)
        bus = getattr(p, "pci_bus_id", None)
        identity = "%04x:%02x:%02x.0"
        sm = "sm_%d%d" % (p.major, p.minor)
        facts["torch"]["devices"].append({
            "index": i,
            "name": p.name,
            "memory_bytes": p.total_memory,
            "compute_units": p.multi_processor_count,
            "architecture": getattr(p, "gcnArchName", sm).split(":")[0],
            "identity": "" if bus is None else identity % (p.pci_domain_id, bus, p.pci_device_id),
        })
except Exception as error:  # a broken installation raises anything: it is the answer
    facts["torch"] = {"error": "%s: %s" % (type(error).__name__, error)}
try:
    import onnxruntime
    facts["onnxruntime"] = {
        "version": onnxruntime.__version__,
        "providers": onnxruntime.get_available_providers(),
    }
except Exception as error:  # a broken installation raises anything: it is the answer
    facts["onnxruntime"] = {"error": "%s: %s" % (type(error).__name__, error)}
sys.stdout.write("\\n" + json.dumps(facts))
"""


def host_facts(proc: str) -> Dict[str, Any]:
    """Name, boot, kernel, CPU and memory (bytes) of the node, with /proc below `proc`."""
    model = re.search(
        r"^(?:model name|Model|cpu)\s*:\s*(.+)$", read(os.path.join(proc, "cpuinfo")), re.M
    )
    memory = re.search(r"^MemTotal:\s*(\d+) kB", read(os.path.join(proc, "meminfo")), re.M)
    return {
        "host": socket.gethostname(),
        "boot_id": read(os.path.join(proc, "sys/kernel/random/boot_id")),
        "kernel": platform.release(),
        "cpu_model": model.group(1).strip() if model else platform.machine(),
        "cpus": os.cpu_count(),
        "cpus_allowed": sorted(os.sched_getaffinity(0)),
        "memory_bytes": int(memory.group(1)) * 1024 if memory else None,
    }


def packages() -> Dict[str, str]:
    """Versions of the PACKAGES that are installed, by their metadata: nothing is imported."""
    from importlib import metadata

    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except (metadata.PackageNotFoundError, TypeError):  # a half-removed package has no version
            continue
    return {name: version for name, version in versions.items() if version}


def devices(sysfs: str, host: Dict[str, Any]) -> List[Dict[str, Any]]:
    """The accelerators, then the CPU as described by host_facts(); memory in bytes."""
    accelerators = probe_devices.rocm(sysfs) + probe_devices.nvidia()
    cpu = {
        "index": 0,
        "kind": "cpu",
        "name": host["cpu_model"],
        "identity": "",
        "memory_bytes": host["memory_bytes"],
        "compute_units": len(host["cpus_allowed"]),
        "architecture": platform.machine(),
        "driver": "",
    }
    return accelerators + [cpu]


def clocks() -> Dict[str, int]:
    """Resolution of each of the CLOCKS that this Python knows, in ns."""
    resolutions = {}
    for name in CLOCKS:
        number = getattr(time, name, None)
        if number is not None:
            resolutions[name] = round(time.clock_getres(number) * 1e9)
    return resolutions


def cpu_limit(sysfs: str, proc: str) -> float | None:
    """CPUs that the control group grants (quota / period), or None where it sets no limit; cgroup
    v2, then v1.
    """
    group = re.search(r"^0::(.*)$", read(os.path.join(proc, "self/cgroup")), re.M)
    folder = (group.group(1) if group else "").strip("/")
    text = read(os.path.join(sysfs, "fs/cgroup", folder, "cpu.max")) or read(
        os.path.join(sysfs, "fs/cgroup/cpu.max")
    )
    quota, _, period = text.partition(" ")
    if not text:
        quota = read(os.path.join(sysfs, "fs/cgroup/cpu/cpu.cfs_quota_us"))
        period = read(os.path.join(sysfs, "fs/cgroup/cpu/cpu.cfs_period_us"))
    return (
        int(quota) / int(period) if quota.isdigit() and period.isdigit() and int(period) else None
    )


def surroundings(sysfs: str, proc: str) -> Dict[str, Any]:
    """What says that this runs in a container, in a Slurm job, or under a limit of CPUs."""
    container = next(
        (
            kind
            for kind, sign in (
                (
                    "apptainer",
                    "APPTAINER_CONTAINER" in os.environ or "SINGULARITY_CONTAINER" in os.environ,
                ),
                ("docker", os.path.exists("/.dockerenv")),
                ("podman", os.path.exists("/run/.containerenv")),
            )
            if sign
        ),
        "",
    )
    slurm = {
        name: os.environ[name]
        for name in ("SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_NTASKS", "SLURM_JOB_PARTITION")
        if name in os.environ
    }
    return {"container": container, "slurm": slurm, "cpu_limit": cpu_limit(sysfs, proc)}


def frameworks() -> Dict[str, Any]:
    """What torch and onnxruntime see, or {"error": ...}. A child process is asked, since they may
    be slow, chatty, or crash; it has 120 s.
    """
    try:
        answer = subprocess.run(
            [sys.executable, "-c", CHILD],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=120,
            check=False,
            env=_framework_environment(),
        )
        seen: Dict[str, Any] = json.loads(
            answer.stdout.decode("utf-8", "replace").strip().splitlines()[-1]
        )
        return seen
    except (OSError, subprocess.TimeoutExpired, ValueError, IndexError) as error:
        return {"error": "%s: %s" % (type(error).__name__, error)}


def _framework_environment() -> Dict[str, str]:
    return {
        name: value for name, value in os.environ.items() if not name.startswith("PROFHARNESS_")
    }


def facts(sysfs: str = "/sys", proc: str = "/proc", dev: str = "/dev") -> Dict[str, Any]:
    """Everything that is printed, except for the frameworks; the arguments are the roots below
    which it reads.
    """
    host, found_tools = host_facts(proc), probe_tools.tools()
    found_profilers = probe_profilers.profilers(found_tools)
    return dict(
        host,
        v=1,
        python={"executable": sys.executable, "version": platform.python_version()},
        packages=packages(),
        devices=devices(sysfs, host),
        masks=probe_devices.masks(os.environ),
        tools=found_tools,
        rocm_version=probe_tools.rocm_version(found_tools),
        lacks_rocm=probe_tools.lacks_rocm(found_profilers["torch"]["hip"]),
        profilers=found_profilers,
        permissions=probe_access.permissions(sysfs, proc, dev),
        clocks=clocks(),
        **surroundings(sysfs, proc),
    )


def main(arguments: List[str]) -> int:
    """Print the facts as JSON on stdout. Returns the exit status."""
    import argparse

    parser = argparse.ArgumentParser(description="Print facts of this node as JSON.")
    parser.add_argument(
        "--frameworks",
        action="store_true",
        help="import torch and onnxruntime in a child and tell what they see",
    )
    parser.add_argument(
        "--sysfs", default="/sys", metavar="ROOT", help="read devices below ROOT instead of /sys"
    )
    parser.add_argument(
        "--dev",
        default="/dev",
        metavar="ROOT",
        help="look for device files below ROOT instead of /dev",
    )
    options = parser.parse_args(arguments)
    all_facts = facts(options.sysfs, dev=options.dev)
    if options.frameworks:
        all_facts["frameworks"] = frameworks()
    sys.stdout.write(json.dumps(all_facts, indent=1, sort_keys=True) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
