"""What a Kineto file says about itself outside of its events: clock base, rank, host, devices,
versions.

Newer files hold their clock base in `baseTimeNanoseconds`; event times are relative to it.
`deviceProperties` lists the devices that the process saw, numbered from zero, while events carry
the physical number.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated

import msgspec

from profharness.readers.bytes.json_scan import NOT_JSON
from profharness.readers.bytes.limits import LARGEST, MOST_RANK, Nanoseconds, Rank, whole

_VERSIONS = (
    "schemaVersion",
    "roctracer_version",
    "rocprofiler-sdk_version",
    "hip_runtime_version",
    "hip_driver_version",
    "cupti_version",
    "cuda_runtime_version",
    "cuda_driver_version",
    "nccl_version",
    "trace_id",
    "with_stack",
    "record_shapes",
    "profile_memory",
    "with_flops",
    "with_modules",
)


_Amount = Annotated[int, msgspec.Meta(ge=0, le=LARGEST)]
_MOST_THREADS = 1024  # of one block, on every device that ROCm or CUDA knows

# HIP tells generations apart by the minor number from gfx942 on; 9.0 may be gfx908 or gfx90a.
_AMD = {(9, 4): "gfx942", (9, 5): "gfx950"}


class DeviceProperties(msgspec.Struct, frozen=True):
    """One entry of `deviceProperties`."""

    id: int = -1
    name: str = ""
    compute_units: _Amount | None = msgspec.field(default=None, name="numSms")
    memory_bytes: _Amount | None = msgspec.field(default=None, name="totalGlobalMem")
    major: int | None = msgspec.field(default=None, name="computeMajor")
    minor: int | None = msgspec.field(default=None, name="computeMinor")
    most_threads: _Amount | None = msgspec.field(default=None, name="maxThreadsPerBlock")

    def architecture(self, vendor: str) -> str:
        """`sm_80`, `gfx942`; empty where the entry does not say, or does not say enough."""
        if self.major is None or self.minor is None:
            return ""
        if vendor == "nvidia":
            return f"sm_{self.major}{self.minor}"
        return _AMD.get((self.major, self.minor), "") if vendor == "amd" else ""


class _Group(msgspec.Struct, frozen=True):
    """An entry of `pg_config`."""

    ranks: tuple[int, ...] = ()


class Distributed(msgspec.Struct, frozen=True):
    """`distributedInfo` of a process. `pg_config` is decoded by itself: its form differs between
    versions.
    """

    rank: Rank | None = None
    world_size: Rank | None = None
    backend: str = ""
    nccl_version: str = ""
    pg_config: msgspec.Raw = msgspec.Raw(b"[]")

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The ranks of each process group; empty where the file does not say."""
        try:
            return tuple(
                group.ranks
                for group in msgspec.json.decode(
                    self.pg_config, type=tuple[_Group, ...], strict=False
                )
                if group.ranks
            )
        except NOT_JSON:
            return ()


_ALONE = Distributed()
_STATED_RANK = re.compile(rb'"distributedInfo"\s*:\s*\{[^{}\[\]]*?"rank"\s*:\s*(\d+)')


@dataclass(frozen=True)
class Header:
    """The keys that mean something here. `base_ns` is None where the file has none."""

    base_ns: int | None = None
    host: str = ""
    distributed: Distributed = _ALONE
    devices: tuple[DeviceProperties, ...] = ()
    details: tuple[tuple[str, str], ...] = ()
    unreadable: tuple[str, ...] = ()

    @property
    def tool_version(self) -> str:
        """The tracing library and its version, empty where the file does not say."""
        details = dict(self.details)
        named = (
            (key.removesuffix("_version"), details[key])
            for key in ("roctracer_version", "rocprofiler-sdk_version", "cupti_version")
            if key in details
        )
        return " ".join(next(named, ()))

    @property
    def is_rocm(self) -> bool:
        return any(
            name.startswith(("hip_", "roctracer_", "rocprofiler")) for name, _ in self.details
        )

    @property
    def most_threads(self) -> int:
        """The most work-items that a workgroup can have, by the largest of the file's devices; 1024
        where they do not say.
        """
        stated = [device.most_threads for device in self.devices if device.most_threads]
        return max(stated, default=_MOST_THREADS)

    def device(self, index: str) -> DeviceProperties | None:
        """Properties of the device that events call `index`: the entry of that number, or what all
        entries agree on.
        """
        distinct = {(d.name, d.compute_units) for d in self.devices}
        if len(distinct) == 1:
            return self.devices[0]
        return next((d for d in self.devices if str(d.id) == index), None)


def stated_rank(head: bytes) -> int | None:
    """The rank that the beginning of a file states; None where it stands further behind, or
    nowhere.
    """
    match = _STATED_RANK.search(head)
    rank = whole(match[1].decode()) if match else None
    return None if rank is None or rank > MOST_RANK else rank


def read_header(keys: dict[str, bytes]) -> Header:
    """The header from the raw values of the top-level keys; a value of unexpected form is named,
    not trusted.
    """
    unreadable: list[str] = []

    def value(key: str, kind: object) -> object:
        try:
            return msgspec.json.decode(keys[key], type=kind, strict=False) if key in keys else None
        except NOT_JSON:
            unreadable.append(key)
            return None

    base, host = value("baseTimeNanoseconds", Nanoseconds), value("host_name", str)
    distributed, devices = (
        value("distributedInfo", Distributed),
        value("deviceProperties", tuple[DeviceProperties, ...]),
    )
    details = [
        (key, keys[key].decode("utf-8", "replace").strip('"')) for key in _VERSIONS if key in keys
    ]
    if isinstance(distributed, Distributed):
        details += [("backend", distributed.backend)] * bool(distributed.backend)
        details += [("nccl_version", distributed.nccl_version)] * bool(distributed.nccl_version)
    return Header(
        base_ns=base if isinstance(base, int) else None,
        host=host if isinstance(host, str) else "",
        distributed=distributed if isinstance(distributed, Distributed) else _ALONE,
        devices=devices if isinstance(devices, tuple) else (),
        details=tuple(details),
        unreadable=tuple(unreadable),
    )
