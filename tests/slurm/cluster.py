"""A real Slurm of two nodes on this machine: its own, or the Slurm 24 that `make slurm24` builds.

Each node is a namespace with a host name and process numbers of its own, which one kill ends whole.
It needs root, and nothing of it is left behind.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.tools import get_slurm24

ALL_ON_24 = os.environ.get("SLURM_OF_TESTS") == "24"
"""Whether the Slurm 24 is to stand for this machine's in all tests."""
NODES = ("n1", "n2")
_CLIENT_S = 60.0
_UP_S = 60.0

_CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={home}/munge/socket
SlurmctldPort={ports[0]}
StateSaveLocation={home}/state
SlurmdSpoolDir={home}/spool.%n
SlurmctldPidFile={home}/run/slurmctld.pid
SlurmdPidFile={home}/run/slurmd.%n.pid
SlurmctldLogFile={home}/log/slurmctld.log
SlurmdLogFile={home}/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
TmpFS={home}/tmp.%n
ReturnToService=2
SlurmdParameters=config_overrides
SlurmdTimeout=10
KillWait=20
MinJobAge=300
SchedulerParameters=sched_interval=2,batch_sched_delay=0,bf_interval=5
AccountingStorageType=accounting_storage/none
NodeName=n1 NodeHostname=n1 NodeAddr=127.0.0.1 Port={ports[1]} CPUs=4 RealMemory=2000
NodeName=n2 NodeHostname=n2 NodeAddr=127.0.0.1 Port={ports[2]} CPUs=4 RealMemory=2000
PartitionName=debug Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
"""


def require() -> None:
    """Skip with the reason where no cluster of this machine's own Slurm can be started."""
    missing = [name for name in get_slurm24.PROGRAMS if shutil.which(name, path=_path()) is None]
    if missing:
        pytest.skip(f"no Slurm here: {', '.join(missing)}")
    if os.geteuid() != 0:
        pytest.skip("a Slurm of two nodes needs root: each node is a namespace")


def slurm24() -> Path:
    """The folder of its programs. Skips with the reason where there is none."""
    if why := get_slurm24.lacks(get_slurm24.DEFAULT):
        pytest.skip(why)
    return get_slurm24.programs(get_slurm24.DEFAULT)


def _path(programs: Path | None = None) -> str:
    known = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    return f"{programs}:{known}" if programs else known


@dataclass
class Cluster:
    """Two nodes that run. `variables` are what clients need, `programs` where Slurm's are, before
    those of PATH.
    """

    home: Path
    programs: Path | None = None
    nodes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    daemons: list[int] = field(default_factory=list)

    @property
    def variables(self) -> dict[str, str]:
        """Without what a job around the tests would set."""
        clean = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("SLURM", "SBATCH", "SQUEUE", "PMI"))
        }
        return {
            **clean,
            "SLURM_CONF": str(self.home / "etc/slurm.conf"),
            "PATH": _path(self.programs),
        }

    def client(self, *words: str) -> str:
        """What a client says. Fails where it does."""
        done = subprocess.run(
            words,
            env=self.variables,
            capture_output=True,
            text=True,
            timeout=_CLIENT_S,
            check=False,
        )
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout

    def kill_node(self, name: str) -> None:
        """The daemon is killed, and the node with it and all tasks; the controller finds out by
        itself, after SlurmdTimeout.
        """
        _kill_namespace(self.nodes.pop(name))

    def start_node(self, name: str) -> None:
        """Raises AssertionError where it does not become idle."""
        begin = f"hostname {name}; mount --bind {self.home}/etc/hosts /etc/hosts; "
        begin += f"exec slurmd -D -N {name}"
        self.nodes[name] = subprocess.Popen(
            (
                *("unshare", "-m", "-u", "-p", "-f", "--mount-proc", "--kill-child", "sh", "-c"),
                begin,
            ),
            env=self.variables,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def await_idle(self) -> None:
        """Raises AssertionError where the nodes do not come up."""
        until = time.monotonic() + _UP_S
        while time.monotonic() < until:
            seen = self.client("sinfo", "-h", "-N", "-o", "%n %T").split("\n")
            if sorted(filter(None, seen)) == ["n1 idle", "n2 idle"]:
                return
            for name in NODES:
                if re.search(rf"^{name} down$", "\n".join(seen), re.MULTILINE):
                    self.client("scontrol", "update", f"NodeName={name}", "State=RESUME")
            time.sleep(0.1)
        raise AssertionError(self.client("scontrol", "show", "node"))

    def stop(self) -> None:
        """End all that `start` began."""
        for process in self.nodes.values():
            _kill_namespace(process)
        pids = [*self.daemons, *_from_file(self.home / "run/slurmctld.pid")]
        pids += _from_file(self.home / "munge/munged.pid")
        for pid in pids:
            os.kill(pid, signal.SIGKILL)


def _kill_namespace(process: subprocess.Popen[bytes]) -> None:
    """`unshare --kill-child` takes the whole namespace with it."""
    process.kill()
    process.wait()


def _from_file(path: Path) -> list[int]:
    text = path.read_text().strip() if path.exists() else ""
    return [int(text)] if text and Path(f"/proc/{text}").exists() else []


def start(home: Path, programs: Path | None = None) -> Cluster:
    """A cluster whose files lie in `home`, of the Slurm whose programs are in that folder, else of
    PATH's. Raises AssertionError where it does not come up.
    """
    for name in ("etc", "state", "run", "log", "spool.n1", "spool.n2", "tmp.n1", "tmp.n2"):
        (home / name).mkdir()
    cluster = Cluster(home, programs)
    try:
        _start_munge(cluster)
        text = _CONFIGURATION.format(home=home, host=socket.gethostname(), ports=_free_ports(3))
        (home / "etc/slurm.conf").write_text(text)
        if programs:  # those of before 23 do not know the word, and need no such file
            (home / "etc/cgroup.conf").write_text("CgroupPlugin=disabled\n")
        names = f"localhost {socket.gethostname()} {' '.join(NODES)}"
        (home / "etc/hosts").write_text(f"127.0.0.1 {names}\n")  # launchers look them up
        subprocess.run(("slurmctld",), env=cluster.variables, check=True, timeout=_CLIENT_S)
        for name in NODES:
            cluster.start_node(name)
        cluster.await_idle()
    except BaseException:
        cluster.stop()
        raise
    return cluster


def _start_munge(cluster: Cluster) -> None:
    """As root, which `--force` has it put up with."""
    folder = cluster.home / "munge"
    folder.mkdir()
    key = folder / "key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    files = [
        f"--{name}={folder / file}"
        for name, file in (
            ("key-file", "key"),
            ("socket", "socket"),
            ("pid-file", "munged.pid"),
            ("log-file", "log"),
            ("seed-file", "seed"),
        )
    ]
    subprocess.run(
        ("munged", "--force", *files),
        env=cluster.variables,
        check=True,
        timeout=_CLIENT_S,
    )


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()
