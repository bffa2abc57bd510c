"""A real Slurm of two nodes on this machine: Debian's munge, slurmctld, slurmd and slurm-client.

Each node is a namespace with a host name and process numbers of its own, which one kill ends whole.
It needs root, and nothing of it is left behind.
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scancel", "scontrol")
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
    """Skip with the reason where no such cluster can be started."""
    missing = [name for name in PROGRAMS if shutil.which(name, path=_path()) is None]
    if missing:
        pytest.skip(f"no Slurm here: {', '.join(missing)}")
    if os.geteuid() != 0:
        pytest.skip("a Slurm of two nodes needs root: each node is a namespace")


def _path() -> str:
    return f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


@dataclass
class Cluster:
    """Two nodes that run. `variables` are what clients need."""

    home: Path
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
        return {**clean, "SLURM_CONF": str(self.home / "etc/slurm.conf"), "PATH": _path()}

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


def start(home: Path) -> Cluster:
    """A cluster whose files lie in `home`. Raises AssertionError where it does not come up."""
    for name in ("etc", "state", "run", "log", "spool.n1", "spool.n2", "tmp.n1", "tmp.n2"):
        (home / name).mkdir()
    cluster = Cluster(home)
    try:
        _start_munge(cluster)
        text = _CONFIGURATION.format(home=home, host=socket.gethostname(), ports=_free_ports(3))
        (home / "etc/slurm.conf").write_text(text)
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
    """Under its own user, which must reach its folder: munge refuses all else."""
    folder, user = cluster.home / "munge", pwd.getpwnam("munge")
    folder.mkdir()
    key = folder / "key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    for path in (folder, key):
        os.chown(path, user.pw_uid, user.pw_gid)
    folder.chmod(0o755)
    for parent in cluster.home.parents:
        if parent.stat().st_uid == os.geteuid() and not parent.stat().st_mode & 0o001:
            parent.chmod(parent.stat().st_mode | 0o011)
    cluster.home.chmod(0o755)
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
        user=user.pw_uid,
        group=user.pw_gid,
        extra_groups=(),
        env={"PATH": _path()},
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
