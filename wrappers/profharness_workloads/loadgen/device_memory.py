"""Regions of shared memory in which tensors lie: of the system (/dev/shm), or of a device.

A device's memory is taken through the vendor's own C library, so that the load generator needs no
framework: CUDA's runtime (libcudart) or HIP's (libamdhip64). Their functions have the same names
behind `cuda` and `hip`, and the same arguments; a handle for other processes has 64 bytes in both
(cuda_runtime_api.h, cudaIpcMemHandle_t; hip_runtime_api.h, hipIpcMemHandle_t).
"""

from __future__ import annotations

import base64
import ctypes
import ctypes.util
import mmap
import os
from typing import Any, Dict, Mapping, NamedTuple, Optional, Tuple

from profharness_workloads.shared.protocol import MISSING, Refusal

HANDLE_BYTES = 64
TO_DEVICE = 1  # cudaMemcpyHostToDevice, hipMemcpyHostToDevice


class Library(NamedTuple):
    """A vendor's runtime: names of its file, newest first, and what users call the rest."""

    files: Tuple[str, ...]
    devices: str
    hint: str


LIBRARIES = {
    "cuda": Library(
        ("libcudart.so", "libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"),
        "NVIDIA",
        "pip install nvidia-cuda-runtime-cu12 and put its lib folder on LD_LIBRARY_PATH",
    ),
    "hip": Library(
        ("libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"),
        "AMD",
        "load the module of ROCm, or put its lib folder on LD_LIBRARY_PATH",
    ),
}


class SystemMemory:
    """Files in /dev/shm, by their names."""

    page = "systemsharedmemory"

    def make(self, name: str, size: int) -> Mapping[str, Any]:
        """Make a region; what the server is told of it."""
        fd = os.open("/dev/shm/" + name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            # a full /dev/shm is an error here, not a bus error later
            os.posix_fallocate(fd, 0, size)
        finally:
            os.close(fd)
        return {"key": "/" + name, "offset": 0, "byte_size": size}

    def fill(self, name: str, pieces: Mapping[int, bytes], size: int) -> None:
        """Write each piece at its offset."""
        with open("/dev/shm/" + name, "r+b") as file, mmap.mmap(file.fileno(), size) as memory:
            for at, piece in pieces.items():
                memory[at : at + len(piece)] = piece

    def remove(self, name: str) -> None:
        """Unlink the file, where it was made."""
        try:
            os.unlink("/dev/shm/" + name)
        except FileNotFoundError:
            pass  # it was not made any more


class DeviceMemory:
    """Memory of one device, by the names of the regions. Raises Refusal (MISSING) where the library
    or the device is not there.
    """

    page = "cudasharedmemory"  # Triton's extension has one page for either vendor

    def __init__(self, vendor: str, device: int):
        self._vendor, self._device = vendor, device
        self._library = _opened(vendor)
        self._places: Dict[str, Any] = {}
        count = ctypes.c_int(0)
        status = int(self._function("GetDeviceCount")(ctypes.byref(count)))
        if status or count.value <= device:
            raise Refusal(
                "--shared-memory %s: there is no device %d here (%s sees %d)"
                % (vendor, device, LIBRARIES[vendor].devices, 0 if status else count.value),
                "use --shared-memory system, or run on a node with an %s GPU"
                % LIBRARIES[vendor].devices,
                MISSING,
            )
        self._call("SetDevice", ctypes.c_int(device))

    def make(self, name: str, size: int) -> Mapping[str, Any]:
        """Take memory of the device; what the server is told of it."""
        place = ctypes.c_void_p()
        self._call("Malloc", ctypes.byref(place), ctypes.c_size_t(size))
        self._places[name] = place
        handle = ctypes.create_string_buffer(HANDLE_BYTES)
        self._call("IpcGetMemHandle", handle, place)
        told = base64.b64encode(handle.raw).decode("ascii")
        return {"raw_handle": {"b64": told}, "device_id": self._device, "byte_size": size}

    def fill(self, name: str, pieces: Mapping[int, bytes], size: int) -> None:
        """Copy everything to the device at once."""
        whole = bytearray(size)
        for at, piece in pieces.items():
            whole[at : at + len(piece)] = piece
        source = (ctypes.c_char * size).from_buffer(whole)
        place, length = self._places[name], ctypes.c_size_t(size)
        self._call("Memcpy", place, source, length, ctypes.c_int(TO_DEVICE))

    def remove(self, name: str) -> None:
        """Give the memory back, where it was taken."""
        place = self._places.pop(name, None)
        if place is not None:
            self._function("Free")(place)  # at the end nothing is left to do about a failure

    def _function(self, name: str) -> Any:
        return getattr(self._library, self._vendor + name)

    def _call(self, name: str, *arguments: Any) -> None:
        """Raises Refusal with the library's own word for what went wrong."""
        status = int(self._function(name)(*arguments))
        if status:
            word = self._function("GetErrorString")
            word.restype = ctypes.c_char_p
            said = (word(ctypes.c_int(status)) or b"").decode("utf-8", "replace")
            raise Refusal(
                "--shared-memory %s: %s%s failed (%d %s)"
                % (self._vendor, self._vendor, name, status, said),
                "use --shared-memory system, or free memory on the device",
                MISSING,
            )


def _opened(vendor: str) -> Any:
    """The vendor's library. Raises Refusal (MISSING) where none of its names can be loaded."""
    library = LIBRARIES[vendor]
    reason: Optional[OSError] = None
    for name in library.files:
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            reason = reason or error
    raise Refusal(
        "--shared-memory %s: %s is not on this machine, which %s GPUs need"
        % (vendor, library.files[0], library.devices),
        library.hint,
        MISSING,
    ) from reason


def memory(kind: str, device: int) -> Any:
    """Where regions of this kind lie: system, cuda or hip."""
    return SystemMemory() if kind == "system" else DeviceMemory(kind, device)
