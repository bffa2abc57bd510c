"""What this user may open on the node: AMD's device files, and the kernel's performance counters.

A device file is really opened: the mode of a file says nothing of a control group that keeps a
device from a job (EPERM). What stands in sysfs may be read by everybody, so that a device may be
listed there and still be closed to this user.
"""

from __future__ import annotations

import errno
import os
import re

from probe_devices import read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict


# include/uapi/linux/capability.h; with either a process may count events whatever
# perf_event_paranoid says
CAP_SYS_ADMIN, CAP_PERFMON = 21, 38


def permissions(sysfs: str, proc: str, dev: str) -> Dict[str, Any]:
    """The device files of AMD's drivers and this user's groups, below these roots (/sys, /proc,
    /dev); unreadable files are the most common reason for "no GPU found".
    """
    dri = os.path.join(dev, "dri")
    renders = sorted(
        name
        for name in (os.listdir(dri) if os.path.isdir(dri) else ())
        if name.startswith("renderD")
    )
    kfd = os.path.join(dev, "kfd")
    nodes = [device_file(os.path.join(dri, name), _vendor(sysfs, name)) for name in renders]
    files = ([device_file(kfd, "")] if os.path.exists(kfd) else []) + nodes
    paranoid = read(os.path.join(proc, "sys/kernel/perf_event_paranoid"))
    return {
        "files": files,
        "kfd_present": os.path.exists(kfd),
        "kfd_readable": any(file["path"] == kfd and not file["error"] for file in files),
        "render_nodes": renders,
        "render_readable": bool(nodes) and not any(file["error"] for file in nodes),
        "amdgpu": os.path.isdir(os.path.join(sysfs, "module/amdgpu")),
        "hidden_devices": hidden_devices(sysfs),
        "perf_event_paranoid": int(paranoid) if re.match(r"-?\d+$", paranoid) else None,
        "perfmon": may_count(proc),
        "groups": sorted(set(filter(None, map(group_name, [os.getegid()] + os.getgroups())))),
        "user": os.getuid(),
        "user_name": user_name(),
    }


def device_file(path: str, vendor: str) -> Dict[str, Any]:
    """One device file: why it cannot be opened for reading and writing (the errno's name, "" where
    it can), and whose it is.

    "listed" says that the user database has this user in the file's group; a session from before
    that does not.
    """
    try:
        status = os.stat(path)
    except OSError as error:
        return {
            "path": path,
            "error": _name(error),
            "group": "",
            "gid": -1,
            "mode": "",
            "vendor": vendor,
            "listed": False,
        }
    return {
        "path": path,
        "error": why_closed(path),
        "group": group_name(status.st_gid),
        "gid": status.st_gid,
        "mode": "%04o" % (status.st_mode & 0o7777),
        "vendor": vendor,
        "listed": _is_listed(status.st_gid),
    }


def why_closed(path: str) -> str:
    """The name of the errno with which the file refuses to be opened; "" where it opens."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK))
    except OSError as error:
        return _name(error)
    return ""


def hidden_devices(sysfs: str) -> int:
    """How many nodes of KFD's topology keep their properties from this job: the kernel does so
    where a control group forbids the device.
    """
    nodes = os.path.join(sysfs, "class/kfd/kfd/topology/nodes")
    try:
        numbers = [name for name in os.listdir(nodes) if name.isdigit()]
    except OSError:
        return 0
    return sum(not read(os.path.join(nodes, number, "properties")) for number in numbers)


def may_count(proc: str) -> bool:
    """Whether this process has a capability that overrides perf_event_paranoid."""
    capabilities = re.search(
        r"^CapEff:\s*([0-9a-fA-F]+)$", read(os.path.join(proc, "self/status")), re.M
    )
    return bool(
        capabilities and int(capabilities.group(1), 16) & (1 << CAP_PERFMON | 1 << CAP_SYS_ADMIN)
    )


def group_name(number: int) -> str:
    """A group's name, or its number where the system has no name for it (usual in containers)."""
    import grp

    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)


def user_name() -> str:
    """Name of the user, or the number where the system has no name for it."""
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def _is_listed(gid: int) -> bool:
    import grp

    try:
        return user_name() in grp.getgrgid(gid).gr_mem
    except KeyError:
        return False


def _vendor(sysfs: str, name: str) -> str:
    """PCI vendor of a render node's device, such as 0x1002 for AMD; "" where sysfs does not say."""
    return read(os.path.join(sysfs, "class/drm", name, "device/vendor"))


def _name(error: OSError) -> str:
    return errno.errorcode.get(error.errno or 0, str(error.errno))
