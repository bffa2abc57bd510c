"""AMD's rocprofiler-sdk as ctypes sees it: the functions of its device counting service, and the
few bytes of its structures that are needed.

One description serves the versions 0.6 to 1.x (ROCm 6.4 to 10): every handle is one u64, records
have 40 bytes, and an agent is read by its own size, of which only a part that all versions share is
used. What changed is the name of the function that makes a configuration. Versions before 0.6 had
other signatures under the same names and are refused (headers: source/include/rocprofiler-sdk in
ROCm/rocprofiler-sdk, later projects/rocprofiler-sdk in ROCm/rocm-systems).
"""

from __future__ import annotations

import ctypes
import struct
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_int, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any, NamedTuple

OK = 0
NOT_VALID_FOR_AGENT = 20
HSA_NOT_LOADED = 22
OUT_OF_RESOURCES = 29
EXCEEDS_LIMIT = 38
OLDEST = (0, 6)
NEWEST_MAJOR = 1
AGENT_SIZE = 280  # a larger one than the library's own is refused; all versions have this much
RECORD_BYTES = 40
_GPU = 2

Configure = CFUNCTYPE(c_void_p, c_uint32, c_char_p, c_uint32, c_void_p)
Initialize = CFUNCTYPE(c_int, c_void_p, c_void_p)
Finalize = CFUNCTYPE(None, c_void_p)
Agents = CFUNCTYPE(c_int, c_int, POINTER(c_void_p), c_size_t, c_void_p)
SetConfig = CFUNCTYPE(c_int, c_uint64, c_uint64)
Service = CFUNCTYPE(None, c_uint64, c_uint64, SetConfig, c_void_p)
Counters = CFUNCTYPE(c_int, c_uint64, POINTER(c_uint64), c_size_t, c_void_p)
Dimensions = CFUNCTYPE(c_int, c_void_p, c_size_t, c_void_p)

_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "get_version": (POINTER(c_uint32), POINTER(c_uint32), POINTER(c_uint32)),
    "force_configure": (Configure,),
    "query_available_agents": (c_int, Agents, c_size_t, c_void_p),
    "create_context": (POINTER(c_uint64),),
    "start_context": (c_uint64,),
    "stop_context": (c_uint64,),
    "configure_device_counting_service": (c_uint64, c_uint64, c_uint64, Service, c_void_p),
    "iterate_agent_supported_counters": (c_uint64, Counters, c_void_p),
    "query_counter_info": (c_uint64, c_int, c_void_p),
    "sample_device_counting_service": (c_uint64, c_uint64, c_int, c_void_p, POINTER(c_size_t)),
    "query_record_counter_id": (c_uint64, POINTER(c_uint64)),
    "query_record_dimension_position": (c_uint64, c_uint64, POINTER(c_size_t)),
    "iterate_counter_dimensions": (c_uint64, Dimensions, c_void_p),
}
_CONFIG = (c_uint64, POINTER(c_uint64), c_size_t, POINTER(c_uint64))


class SdkError(Exception):
    """The library cannot be used, or a call of it failed; the text says which and how."""


class ConfigureResult(ctypes.Structure):
    """What `force_configure`'s callback returns: who is called when."""

    _fields_ = (
        ("size", c_size_t),
        ("initialize", Initialize),
        ("finalize", Finalize),
        ("tool_data", c_void_p),
    )


class Agent(NamedTuple):
    """A GPU as the library lists it; `gpu_id` is KFD's, by which it is known elsewhere."""

    handle: int
    gpu_id: int
    target: int
    simds: int
    simds_per_unit: int
    waves_per_simd: int
    dies: int


class Sdk:
    """The loaded library. `call` raises SdkError for every status but 0."""

    def __init__(self, path: str) -> None:
        """Raises SdkError where it cannot be loaded, or is of a version with another interface."""
        try:
            # global: the HSA runtime looks for a profiler among the symbols that are there already
            self._library = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        except OSError as error:
            raise SdkError(f"{path} cannot be loaded ({error})") from error
        self.version = self._version(path)
        if self.version[:2] < OLDEST:
            raise SdkError(
                f"rocprofiler-sdk {self.version_text} cannot count a whole device in a way that is "
                "supported here: 0.6 (ROCm 6.4) is the oldest that can"
            )
        if self.version[0] > NEWEST_MAJOR:
            raise SdkError(
                f"rocprofiler-sdk {self.version_text} is newer than 1.x, and its interface is not "
                "known here"
            )
        self._config = (
            "create_counter_config" if self.version >= (1, 0, 0) else "create_profile_config"
        )
        self._functions = {
            name: self._function(name, arguments)
            for name, arguments in (*_SIGNATURES.items(), (self._config, _CONFIG))
        }
        self._text = self._function("get_status_string", (c_int,))
        self._text.restype = c_char_p

    def _version(self, path: str) -> tuple[int, int, int]:
        parts = [c_uint32() for _ in range(3)]
        try:
            asked = self._function("get_version", _SIGNATURES["get_version"])
        except SdkError as error:
            raise SdkError(f"{path} is no rocprofiler-sdk ({error})") from error
        asked(*parts)
        return parts[0].value, parts[1].value, parts[2].value

    def _function(self, name: str, arguments: tuple[Any, ...]) -> Any:
        try:
            function = getattr(self._library, f"rocprofiler_{name}")
        except AttributeError:
            raise SdkError(
                f"the library lacks rocprofiler_{name}, so it has another interface"
            ) from None
        function.argtypes, function.restype = arguments, c_int
        return function

    @property
    def version_text(self) -> str:
        return ".".join(str(part) for part in self.version)

    def status(self, name: str, *arguments: Any) -> int:
        """Call a function by its name without the prefix; its status."""
        function = self._functions[self._config if name == "create_config" else name]
        return int(function(*arguments))

    def call(self, name: str, *arguments: Any) -> None:
        """Raises SdkError, with the library's own words, where the status is not 0."""
        status = self.status(name, *arguments)
        if status != OK:
            raise SdkError(f"{name}: {self.words(status)}")

    def words(self, status: int) -> str:
        """What the library calls a status, with its number."""
        text = self._text(status)
        return f"status {status} ({text.decode(errors='replace')})" if text else f"status {status}"

    def agents(self) -> list[Agent]:
        """All GPUs. Only while the library initialises. Raises SdkError."""
        found: list[bytes] = []

        def listed(_version: int, agents: Any, count: int, _data: Any) -> int:
            for place in range(count):  # they are gone once the call returns
                size = struct.unpack_from("<Q", ctypes.string_at(agents[place], 8))[0]
                found.append(ctypes.string_at(agents[place], min(size, AGENT_SIZE)))
            return 0

        self.call("query_available_agents", 1, Agents(listed), AGENT_SIZE, None)
        return [agent for data in found if (agent := _agent(data)) is not None]

    def counters(self, agent: int) -> dict[str, int]:
        """The counters that a GPU offers, by name. Raises SdkError."""
        found: list[int] = []

        def listed(_agent: int, counters: Any, count: int, _data: Any) -> int:
            found.extend(counters[:count])
            return 0

        self.call("iterate_agent_supported_counters", agent, Counters(listed), None)
        return {self._counter_name(counter): counter for counter in found}

    def _counter_name(self, counter: int) -> str:
        info = ctypes.create_string_buffer(64)  # 48 bytes: id, name, ...
        self.call("query_counter_info", counter, 1, info)
        return _text_at(struct.unpack_from("<Q", info, 8)[0])

    def die_dimension(self, counter: int) -> int | None:
        """The id of the dimension that counts compute dies; None for a counter without one."""
        found: list[tuple[str, int]] = []

        def listed(dimensions: int, count: int, _data: Any) -> int:
            data = ctypes.string_at(dimensions, 24 * count)
            for place in range(count):
                name, _, number = struct.unpack_from("<QQQ", data, 24 * place)
                found.append((_text_at(name), number))
            return 0

        self.call("iterate_counter_dimensions", counter, Dimensions(listed), None)
        return next((number for name, number in found if name.endswith("XCC")), None)


def _agent(data: bytes) -> Agent | None:
    """A GPU among the agents, by the offsets that all versions share; None for a CPU. Raises
    SdkError.
    """
    if len(data) < AGENT_SIZE:
        raise SdkError(f"the library's agents have {len(data)} bytes, fewer than in any version")

    def u32(offset: int) -> int:
        return int(struct.unpack_from("<I", data, offset)[0])

    if u32(16) != _GPU:
        return None
    handle, gpu_id = struct.unpack_from("<Q", data, 8)[0], struct.unpack_from("<Q", data, 192)[0]
    return Agent(handle, gpu_id, u32(100), u32(24), max(u32(92), 1), u32(48), max(u32(68), 1))


def _text_at(address: int) -> str:
    return ctypes.string_at(address).decode(errors="replace") if address else ""
