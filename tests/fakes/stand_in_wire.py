"""A wire with a delay between this network namespace and another one, for kernels without the netem
queue.

`stand_in_wire.py PID DELAY_MS NEAR FAR`: makes a TUN device here and one in the namespace of PID,
gives them the addresses, and carries packets from either to the other after the delay. Prints
`ready` when it does. Linux, root.
"""

from __future__ import annotations

import collections
import ctypes
import fcntl
import os
import select
import struct
import subprocess
import sys
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
CLONE_NEWNET = 0x40000000
MTU = 1500


def device(name: str, address: str) -> int:
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    for command in (
        ["address", "add", f"{address}/30", "dev", name],
        ["link", "set", name, "mtu", str(MTU), "up"],
    ):
        subprocess.run(["ip", *command], check=True)
    return fd


def carry(near: int, far: int, delay_s: float) -> None:
    other = {near: far, far: near}
    waiting: collections.deque[tuple[float, int, bytes]] = collections.deque()
    while True:
        wait = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        ready, _, _ = select.select([near, far], [], [], wait)
        for fd in ready:
            waiting.append((time.monotonic() + delay_s, other[fd], os.read(fd, 65536)))
        while waiting and waiting[0][0] <= time.monotonic():
            _, fd, packet = waiting.popleft()
            try:
                os.write(fd, packet)
            except OSError:
                continue  # a wire may lose a packet: TCP sends it again


def main(pid: str, delay_ms: str, near_address: str, far_address: str) -> None:
    near = device(f"phw{pid}", near_address)
    with open(f"/proc/{pid}/ns/net") as namespace:  # noqa: PTH123  a descriptor is wanted
        if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")
    far = device(f"phw{pid}", far_address)
    print("ready", flush=True)
    carry(near, far, float(delay_ms) / 1e3)


if __name__ == "__main__":
    main(*sys.argv[1:])
