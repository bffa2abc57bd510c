"""A Dask scheduler in this process, and workers that Slurm runs as jobs.

Whoever reaches a Dask scheduler can have code run as its user. So this one takes connections only
from whoever has a certificate that is made for it, and is forgotten with it; the jobs find theirs
in a folder that only the user can read. It shows no dashboard, and its web server, which Dask
starts in any case, has no pages and is not to be reached from other machines.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from profharness.errors import Unavailable, UsageError

if TYPE_CHECKING:
    from dask_jobqueue import SLURMCluster
    from distributed import Security

INSTALL = "pip install 'profharness[dask]'"
_CONFIGURED = "jobqueue.slurm"
_UNSEEN = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}  # any free port


@contextmanager
def slurm_jobs(workers: int) -> Iterator[SLURMCluster]:
    """So many jobs, as dask-jobqueue is configured to start them; all are cancelled at the end.

    Raises UsageError without a number, and Unavailable where no jobs can be submitted or what is
    needed for them is not installed.
    """
    if workers < 1:
        raise UsageError(
            "--dask slurm: how many jobs?",
            "add --dask-workers N; partition, memory and time come from dask-jobqueue's "
            "configuration",
        )
    if shutil.which("sbatch") is None:
        raise Unavailable(
            "no Dask workers through Slurm: there is no sbatch here",
            "start this where jobs are submitted",
        )
    try:
        from dask_jobqueue import SLURMCluster
    except ImportError as error:
        raise Unavailable("--dask slurm needs dask-jobqueue", INSTALL) from error
    with ExitStack() as stack:
        try:
            options = _options(_security(stack))
            import dask

            with dask.config.set({"distributed.scheduler.http.routes": []}):
                cluster = SLURMCluster(n_workers=workers, **options)
        except (OSError, ValueError, RuntimeError) as error:
            raise no_jobs(error) from error
        try:
            yield cluster
        finally:
            # by then all jobs are cancelled; distributed checks the status of those that something
            # still refers to, which dask-jobqueue never sets
            with suppress(AssertionError):
                cluster.close()


def _options(security: Security) -> dict[str, Any]:
    """What the cluster is asked for, besides what is configured."""
    import dask

    scheduler = dask.config.get(f"{_CONFIGURED}.scheduler-options", None) or {}
    arguments = dask.config.get(f"{_CONFIGURED}.worker-extra-args", None) or []
    secured = {"protocol": "tls://", "security": security}
    return {
        **secured,
        "scheduler_options": {**scheduler, **_UNSEEN, **secured},
        "worker_extra_args": [*arguments, "--no-dashboard"],
    }


def _security(stack: ExitStack) -> Security:
    """A key and a certificate for this scheduler alone, in files that are removed when `stack` is
    left.
    """
    from distributed import Security

    try:
        made = Security.temporary()
    except ImportError as error:
        raise Unavailable(
            "--dask slurm needs cryptography, to let nobody else talk to the scheduler",
            "pip install 'profharness[dask]'",
        ) from error
    folder = _private_folder(stack)
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    certificate.write_text(made.tls_client_cert)
    key.touch(mode=0o600)
    key.write_text(made.tls_client_key)
    one_for_all = {
        f"tls_{role}_{what}": str(path)
        for role in ("client", "scheduler", "worker")
        for what, path in (("cert", certificate), ("key", key))
    }
    return Security(require_encryption=True, tls_ca_file=str(certificate), **one_for_all)


def _private_folder(stack: ExitStack) -> Path:
    """A folder that only the user can read, where dask-jobqueue is configured to put what jobs
    read; else here or in the user's home: on a cluster the jobs see one of them.
    """
    import dask

    configured = dask.config.get(f"{_CONFIGURED}.shared-temp-directory", None)
    named = os.path.expandvars(configured or "")
    for place in (Path(named).expanduser(),) if configured else (Path.cwd(), Path.home()):
        try:
            made = tempfile.TemporaryDirectory(prefix=".profharness-dask-", dir=place)
        except OSError:
            continue
        return Path(stack.enter_context(made)).absolute()
    raise OSError(
        f"nothing can be written to {named or 'this folder and the home'}, where jobs would find "
        "their certificate"
    )


def no_jobs(error: Exception) -> Unavailable:
    """Why there are no jobs, in Slurm's words where it says so."""
    reason = next((line for line in str(error).splitlines() if "sbatch:" in line), str(error))
    return Unavailable(
        f"no Dask workers through Slurm: {reason}",
        "configure dask-jobqueue: jobqueue.slurm in its yaml (queue, cores, memory, walltime)",
    )
