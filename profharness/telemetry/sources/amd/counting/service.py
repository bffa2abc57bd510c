"""The device counting service of rocprofiler-sdk, called in the one order that it accepts:
configure before HSA begins, all set-up inside of the library's initialisation, then start, once,
and sample.

Counters count from the start on and are never reset: what is read are totals. One thread makes all
calls. Many internal errors of the library end the process, so this runs in one of its own
(`child`).
"""

from __future__ import annotations

import ctypes
import os
from array import array
from collections.abc import Sequence
from ctypes import byref, c_size_t, c_uint64
from typing import Any, NamedTuple

from profharness.telemetry.sources.amd.counting import abi
from profharness.telemetry.sources.amd.counting.abi import Agent, Sdk, SdkError
from profharness.telemetry.sources.amd.counting.sets import INSTEAD

NOT_READ = -1
NO_KFD = 0x1008
_LOCK_AT_START = (1, 1)  # from this version on the device is locked once, not at every start
_MOST_RECORDS = 1 << 16
_VISIBLE = "ROCR_VISIBLE_DEVICES"
"""What HSA leaves out by it, the profiler's library lists all the same."""


class Wanted(NamedTuple):
    """A device to count on: KFD's id, the counters by block, and the columns that are asked for
    (`NAME`, or `NAME:DIE` of one compute die).
    """

    gpu_id: int
    blocks: tuple[tuple[str, ...], ...]
    columns: tuple[str, ...]


class Device:
    """One device while it is set up and read. `why` says why it gives nothing; empty while it
    does. `dropped` are counters that it lacks or that had no room.
    """

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.why = ""
        self.dropped: tuple[str, ...] = ()
        self.context = c_uint64(0)
        self.config = c_uint64(0)
        self._names: dict[int, str] = {}
        self._dies: dict[int, int | None] = {}
        self._buffer: Any = ctypes.create_string_buffer(64 * abi.RECORD_BYTES)
        self._ids: list[int] = []
        self._groups: list[tuple[int, list[int]]] = []

    def configure(self, sdk: Sdk, agent: Agent) -> None:
        """Make the context, and a configuration of as many of the counters as fit. Raises
        SdkError.
        """
        sdk.call("create_context", byref(self.context))
        offered = sdk.counters(agent.handle)
        asked = {name for block in self.wanted.blocks for name in block}
        unneeded = {name for name, better in INSTEAD.items() if better in asked & offered.keys()}
        blocks = [
            [name for name in block if name in offered and name not in unneeded]
            for block in self.wanted.blocks
        ]
        kept = _fitting(sdk, agent.handle, offered, blocks, self.config)
        replaced = {INSTEAD[name] for name in kept if name in INSTEAD}
        self.dropped = tuple(sorted(asked - set(kept) - unneeded - replaced))
        self._names = {offered[name]: name for name in kept}
        self._dies = {counter: sdk.die_dimension(counter) for counter in self._names}

    def sample(self, sdk: Sdk) -> list[int]:
        """The total of each column, NOT_READ where the device does not give it. Raises SdkError."""
        for _ in range(2):
            count = c_size_t(len(self._buffer) // abi.RECORD_BYTES)
            status = sdk.status(
                "sample_device_counting_service",
                self.context.value,
                0,
                0,
                ctypes.addressof(self._buffer),
                byref(count),
            )
            if status != abi.OUT_OF_RESOURCES or count.value > _MOST_RECORDS:
                break
            self._buffer = ctypes.create_string_buffer(max(count.value, 1) * abi.RECORD_BYTES)
        if status != abi.OK:
            raise SdkError(f"sample_device_counting_service: {sdk.words(status)}")
        return self._totals(sdk, count.value)

    def _totals(self, sdk: Sdk, count: int) -> list[int]:
        data = bytes(memoryview(self._buffer)[: count * abi.RECORD_BYTES])
        words = abi.RECORD_BYTES // 8
        ids = array("Q", data)[::words].tolist()
        values = array("d", data)[1::words].tolist()
        if ids != self._ids:  # they stay as they are while one configuration counts
            self._groups, self._ids = self._decoded(sdk, ids), ids
        totals = [NOT_READ] * len(self.wanted.columns)
        for column, places in self._groups:
            totals[column] = int(sum(values[place] for place in places))
        return totals

    def _decoded(self, sdk: Sdk, ids: Sequence[int]) -> list[tuple[int, list[int]]]:
        """Which records make up each column, by the library's own questions: how an id is built
        differs between versions.
        """
        places: dict[int, list[int]] = {}
        columns = {name: place for place, name in enumerate(self.wanted.columns)}
        for place, record in enumerate(ids):
            counter = c_uint64(0)
            sdk.call("query_record_counter_id", record, byref(counter))
            name = self._names.get(counter.value, "")
            column = columns.get(name)
            if column is None:
                column = columns.get(f"{name}:{self._die(sdk, record, counter.value)}")
            if column is not None:
                places.setdefault(column, []).append(place)
        return list(places.items())

    def _die(self, sdk: Sdk, record: int, counter: int) -> int:
        dimension = self._dies.get(counter)
        if dimension is None:
            return 0
        position = c_size_t(0)
        sdk.call("query_record_dimension_position", record, dimension, byref(position))
        return position.value


def _fitting(
    sdk: Sdk,
    agent: int,
    offered: dict[str, int],
    blocks: Sequence[list[str]],
    config: c_uint64,
) -> list[str]:
    """The counters of a configuration that the library accepts, made into `config`: those that are
    not valid here are left out, and of a block that has no room for all, the last ones. Raises
    SdkError.
    """

    def made(names: Sequence[str], into: c_uint64) -> int:
        counters = (c_uint64 * len(names))(*(offered[name] for name in names))
        into.value = 0  # another value would be taken as the base to add to
        return sdk.status("create_config", agent, counters, len(names), byref(into))

    names = [name for block in blocks for name in block]
    if names and made(names, config) == abi.OK:
        return names
    trial = c_uint64(0)
    names = []
    for block in blocks:
        valid = [name for name in block if made([name], trial) == abi.OK]
        while valid and made(valid, trial) == abi.EXCEEDS_LIMIT:
            valid.pop()
        names += valid
    while names:
        status = made(names, config)
        if status == abi.OK:
            return names
        if status != abi.EXCEEDS_LIMIT:
            raise SdkError(f"creating a counter configuration: {sdk.words(status)}")
        names.pop()
    raise SdkError("none of the counters that are read here is known for this device")


class Counting:
    """All devices of one process, from configuring to stopping; each step once."""

    def __init__(self, sdk: Sdk, wanted: Sequence[Wanted]) -> None:
        self._sdk = sdk
        self.devices = [Device(one) for one in wanted]
        self._error = ""
        self._hsa: Any = None
        # the library calls these later: they must not be collected
        self._callbacks: list[Any] = []
        self._result = abi.ConfigureResult(
            ctypes.sizeof(abi.ConfigureResult),
            abi.Initialize(self._initialize),
            abi.Finalize(lambda _data: None),
            None,
        )

    def start(self, hsa: str) -> None:
        """Configure, start HSA and each device. Raises SdkError where no device can be counted."""
        # the HSA runtime's symbols first need the SDK's, hence this order
        try:
            runtime = ctypes.CDLL(hsa, mode=ctypes.RTLD_GLOBAL)
        except OSError as error:
            raise SdkError(f"{hsa} cannot be loaded ({error})") from error
        self._hsa = runtime
        if self._sdk.version[:2] >= _LOCK_AT_START:
            os.environ["ROCPROFILER_DEVICE_LOCK_AT_START"] = "1"
        address = ctypes.addressof(self._result)
        configure = abi.Configure(lambda *_: address)
        self._callbacks.append(configure)
        self._sdk.call("force_configure", configure)
        if self._error:
            raise SdkError(self._error)
        status = int(runtime.hsa_init())
        if status:
            raise SdkError(
                f"HSA cannot be started (status {status:#x}"
                f"{': it finds no usable /dev/kfd' if status == NO_KFD else ''})"
            )
        for device in self.devices:
            if not device.why:
                self._start_one(device)
        if all(device.why for device in self.devices):
            raise SdkError("; ".join(dict.fromkeys(device.why for device in self.devices)))

    def _start_one(self, device: Device) -> None:
        status = self._sdk.status("start_context", device.context.value)
        if status == abi.HSA_NOT_LOADED:
            device.why = (
                "the HSA runtime does not register with the profiler: "
                "it was built without rocprofiler-register"
            )
        elif status != abi.OK:
            hidden = f"; {_VISIBLE} may hide it" if os.environ.get(_VISIBLE) else ""
            device.why = f"counting cannot be started here: {self._sdk.words(status)}{hidden}"

    def _initialize(self, _finalize: object, _data: object) -> int:
        """What is returned is ignored, and an exception would be lost: the reason is kept."""
        try:
            agents = {agent.gpu_id: agent for agent in self._sdk.agents()}
        except Exception as error:  # noqa: BLE001  nothing may go through the library's frames
            self._error = str(error)
            return 1
        for device in self.devices:
            agent = agents.get(device.wanted.gpu_id)
            if agent is None:
                device.why = "the profiler's library does not list it"
                continue
            try:
                self._set_up(device, agent)
            except Exception as error:  # noqa: BLE001  nothing may go through the library's frames
                device.why = str(error)
        return 0

    def _set_up(self, device: Device, agent: Agent) -> None:
        device.configure(self._sdk, agent)

        def chosen(context: int, _agent: int, set_config: Any, _data: object) -> None:
            set_config(context, device.config.value)

        service = abi.Service(chosen)
        self._callbacks.append(service)
        self._sdk.call(
            "configure_device_counting_service",
            device.context.value,
            0,
            agent.handle,
            service,
            None,
        )

    def stop(self) -> None:
        """Stop every device and leave HSA; nothing can be started again in this process."""
        for device in self.devices:
            if not device.why:
                self._sdk.status("stop_context", device.context.value)
        if self._hsa is not None:
            self._hsa.hsa_shut_down()
