# UNCHECKED: no Spack could be had where this was written. It follows Spack's guide for
# PythonPackage; names and versions of the packages below are to be checked with `spack spec`.
#
#   spack repo create profharness-repo profharness_repo
#   mkdir -p profharness-repo/packages/py_profharness    (py-profharness with older releases of Spack)
#   cp packaging/spack/package.py profharness-repo/packages/py_profharness/
#   spack repo add profharness-repo && spack dev-build -d CHECKOUT py-profharness@0.1.0

from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *


class PyProfharness(PythonPackage):
    """Says whether a GPU is saturated by a workload, and if not, what holds it back: scans and
    commands under any profiler, aligned in one Perfetto trace."""

    homepage = "https://example.org/profharness"

    license("Apache-2.0")

    version("0.1.0")

    depends_on("python@3.11:", type=("build", "run"))
    depends_on("py-hatchling@1.25:", type="build")

    depends_on("py-typer@0.19:0.26", type=("build", "run"))
    depends_on("py-rich@13.7:", type=("build", "run"))
    depends_on("py-numpy@1.26:", type=("build", "run"))
    depends_on("py-pandas@2.1:", type=("build", "run"))
    depends_on("py-pyarrow@15:", type=("build", "run"))
    depends_on("py-msgspec@0.19:", type=("build", "run"))
    depends_on("py-psutil@5.9:", type=("build", "run"))
    depends_on("py-jinja2@3.1:", type=("build", "run"))
    depends_on("py-perfetto@0.58.2:", type=("build", "run"))
    depends_on("py-protobuf@6.31.1:", type=("build", "run"))
    depends_on("py-detect-secrets@1.5:", type=("build", "run"))
    depends_on("py-scipy@1.11:", type=("build", "run"))
