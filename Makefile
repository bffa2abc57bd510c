# Two commands for a new user: `make demo` and `make test`. Everything they need is set up in .venv.
#
#   make demo        install, scan ParticleNet on this machine, name the merged trace and the report
#   make test        install, lint, type-check and run all tests
#   make quick       the tests that take less than about a second each
#   make without-recorded   the tests that reach recorded files, in a copy of this checkout beside which there are none
#   make statistics  the tests that show with hundreds of simulated scans what intervals cover
#   make thorough    further variants of the longest tests, of each of which `make test` runs one, and of `make damaged`
#   make coverage    which branches of profharness/ the tests run
#   make fuzz        FUZZ_SECONDS=3600: readers under atheris, guided by the branches that inputs reach
#   make mutations   TRIES=20000 SEED=1: damaged and hostile inputs of every format, and each answer judged
#   make bombs       BOMBS="--only kineto": small inputs that were made to cost much, and what each answer took
#   make faults      TRIES=4 SEED=1: kills, full disks, signals at random moments, and what each cost
#   make starts      ROUNDS=30: twenty starts at once, again and again, of which no run is lost
#   make soak        SOAK_MINUTES=60 SOAK_SCALE=1 SOAK_PARTS=...: long telemetry, many points, requests, runs
#   make compatibility   quick tests on other Pythons and versions of libraries; those not to be had are told
#   make apptainer   a real Apptainer for the tests in containers, from Debian; says why where it cannot be had
#   make easybuild   EasyBuild, which resolves the easyconfig of packaging/ in a test
#   make audit       known vulnerabilities and licences of what is installed
#   make slurm       Debian's Slurm for its tests; as root, and nothing where it is here already
#   make slurm24     builds a Slurm 24 and runs tests on its two nodes; as root, and no part of the others
#   make site        the documentation as a site, in build/site
#   make picture     the picture of a report in the README, from a recorded trace; TRACE=FILE for another one
#
# Another torch:  make demo TORCH=torch TORCH_INDEX=<index url of a ROCm or CUDA build>
# The one you have already (this environment's):  make demo TORCH=installed

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3.14 python3; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && command -v $$p && break; done)
TORCH ?= torch==2.13.0
TORCH_INDEX ?=
EXTRAS := torch,onnx,triton,plots
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
# more than cores, since tests also wait: for servers to start, and for clocks
TESTS_AT_ONCE ?= $(shell expr $(JOBS) \* 2)
# in the order that tests/conftest.py gives them
PYTEST_OPTIONS := -q -n $(TESTS_AT_ONCE) --dist loadgroup --no-loadscope-reorder
PYTEST := $(BIN)/python -m pytest $(PYTEST_OPTIONS)
DEMO_ARGS ?= --batch-sizes 1,4,16,64 --trials 30 --profile torch,onnxruntime
PIP := PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/python -m pip install --quiet $(PIP_OPTIONS)
# with another torch the pin on torch must not bind
CONSTRAINTS := $(VENV)/constraints.txt

# The tests start thousands of programs. Where a container forbids bytecode files, each would compile every module anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test tests quick without-recorded statistics thorough mutations bombs fuzz damaged faults starts soak coverage audit compatibility check site picture ci setup setup-dev trace-processor perf-analyzer amd-tools apptainer mpi tensorflow tools compiled lint types wrapper-types old-pythons imports packages wheel bench tables clean help slurm slurm24 easybuild

help:
	@sed -n '1,/^$$/s/^# \{0,1\}//p' Makefile

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "error: no Python 3.11 or newer found; name one with make PYTHON=/path/to/python3"; exit 1; }
	@echo "using $(PYTHON) ($$($(PYTHON) --version))"
	@$(PYTHON) -m venv $(if $(filter installed,$(TORCH)),--system-site-packages) $(VENV) || \
		{ rm -rf $(VENV); echo "error: $(PYTHON) cannot make a virtual environment; on Debian and Ubuntu install python3-venv"; exit 1; }

$(CONSTRAINTS): constraints.txt | $(BIN)/python
	@if [ "$(TORCH)" = "torch==2.13.0" ]; then cp constraints.txt $@; else grep -v '^torch==' constraints.txt > $@; fi

# torch goes first and by itself, so that no later requirement can choose another build
$(VENV)/.installed: pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	@echo "installing profharness[$(EXTRAS)] with $(TORCH) into $(VENV) (a few minutes the first time)"
	@$(if $(filter installed,$(TORCH)),true,$(PIP) $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) '$(TORCH)')
	@$(PIP) -c $(CONSTRAINTS) -e '.[$(EXTRAS)]'
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	@$(PIP) -c $(CONSTRAINTS) -e '.[$(EXTRAS),training,dask,mcp,docs,dev]'
	@touch $@

setup: $(VENV)/.installed
	@echo "$(VENV) uses $$(readlink -f $(BIN)/python) ($$($(BIN)/python --version))"

setup-dev: $(VENV)/.installed-dev
	@echo "$(VENV) uses $$(readlink -f $(BIN)/python) ($$($(BIN)/python --version))"

demo: setup
	$(BIN)/profharness run particlenet $(DEMO_ARGS)

# Each by itself, so that continuous integration runs them at the same time.
check: lint types wrapper-types old-pythons imports

lint: setup-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .

types: setup-dev
	$(BIN)/mypy

wrapper-types: setup-dev
	$(BIN)/mypy --config-file mypy-wrappers.ini

old-pythons: setup-dev
	$(BIN)/vermin --quiet --no-tips --violations --target=3.8- wrappers

imports: setup-dev
	$(BIN)/lint-imports

# What some tests compare with; see below.
tools: WHERE_POSSIBLE = --where-possible
tools: trace-processor perf-analyzer amd-tools mpi tensorflow apptainer easybuild

# collected once beforehand: else each of the processes compiles the files of all tests. An error
# of collection is told by the run itself.
test: check tests

tests: setup-dev tools
	@$(BIN)/python -m pytest -q --collect-only >/dev/null 2>&1 || true
	$(PYTEST)

quick: setup-dev
	$(PYTEST) --hypothesis-profile=quick -m 'not slow and not statistics and not thorough'

# As a user has it who clones the repository: without ../shared those tests skip, saying so.
without-recorded: setup-dev
	$(BIN)/python -m tests.tools.without_recorded $(PYTEST_OPTIONS)

statistics: setup-dev
	$(PYTEST) -m statistics

# What kills, full disks and signals at random moments cost, as one table; TRIES=200 takes hours.
faults: setup-dev
	@$(BIN)/python -m tests.faults --tries $(or $(TRIES),4) --seed $(or $(SEED),1)

# An hour of telemetry at 1 kHz, 2,000 points, 100,000 requests, 1,000 runs in ls: time, memory, what was lost.
starts: setup-dev
	STARTS_ROUNDS=$(or $(ROUNDS),30) $(BIN)/python -m pytest -q -m '' tests/runs/test_runs_of_a_step.py -k twenty

soak: setup-dev
	@$(BIN)/python -m tests.soak --minutes $(or $(SOAK_MINUTES),60) --scale $(or $(SOAK_SCALE),1) $(SOAK_PARTS)

# The same damaged inputs as continuous integration's, and many more of them.
thorough: setup-dev tools
	$(PYTEST) -m thorough
	$(MAKE) damaged TRIES=5000 FUZZ_INPUTS=1000

# Which lines and branches of profharness/ no test runs; slower than the tests alone, and no part of them.
# What runs in a workload's own processes (tests/wrappers) is not measured, so as not to stand in its way.
coverage: setup-dev
	@mkdir -p .coverage
	$(PYTEST) --ignore=tests/wrappers --cov --cov-branch --cov-report=term

# Real files of every format, changed where it hurts, through the command line; wrong answers lie in build/mutations.
mutations: setup-dev
	$(BIN)/python -m tests.hostile --tries $(or $(TRIES),20000) --seed $(or $(SEED),1) --jobs $(JOBS)

# Valid inputs that were made to cost much, each command a fresh process: 5 s and 500 MB at most.
bombs: setup-dev
	$(BIN)/python -m tests.hostile.bombs $(BOMBS)

# Ends with 3 where no advisory database is reached; WHERE_REACHED=--where-reached says so and goes on.
audit: setup-dev
	$(BIN)/python tests/tools/audit.py $(WHERE_REACHED)

# Other Pythons, the oldest libraries that are allowed, NumPy 1 and 2, pandas 2 and 3; COMBINATIONS="lowest" for some.
compatibility: setup-dev
	@$(BIN)/python tests/tools/compatibility.py $(COMBINATIONS)

# Where atheris cannot be installed, that is said and nothing is fuzzed.
FUZZ_SECONDS ?= 30
fuzz: setup-dev
	@$(PIP) -c $(CONSTRAINTS) -e '.[fuzz]' || echo "atheris could not be installed here"
	$(BIN)/python -m tests.fuzz --seconds $(FUZZ_SECONDS) --inputs $(or $(FUZZ_INPUTS),0) --jobs $(JOBS)

# What continuous integration runs of both: the same each time.
damaged: TRIES = 600
damaged: FUZZ_INPUTS = 100
damaged: mutations fuzz

# A real trace processor for the tests, hash-pinned; the tests that need it skip, saying so, without node.
trace-processor: setup-dev
	@$(BIN)/python tests/tools/get_trace_processor.py

# Triton's perf_analyzer, hash-pinned, for `--via perf-analyzer` and its tests.
perf-analyzer: setup
	@$(BIN)/python tests/tools/get_perf_analyzer.py

# AMD's own tools, hash-pinned and only unpacked, which must read what our telemetry reads; tests skip, saying so, without them.
amd-tools: setup-dev
	@$(BIN)/python tests/tools/get_amd_tools.py

# The launchers of Open MPI, MPICH and Intel MPI, which start real ranks; tests skip, saying so, without them.
mpi: setup-dev
	@$(BIN)/python tests/tools/get_mpi.py

# A real Apptainer for the tests in containers, with a libc of its own. Ends with 3 and says why where it cannot be had.
apptainer: setup-dev
	@$(BIN)/python tests/tools/get_apptainer.py $(WHERE_POSSIBLE)

# EasyBuild in an environment of its own, which must resolve the easyconfig of packaging/.
easybuild: setup-dev
	@$(BIN)/python tests/tools/get_easybuild.py $(WHERE_POSSIBLE)

# TensorFlow in an environment of its own, every version pinned, for the DeepMET studies; tests skip, saying so, without it.
tensorflow: setup-dev
	@$(BIN)/python tests/tools/get_tensorflow.py

# the tables that documents take from the code; a test fails where they are stale
tables: setup-dev
	@$(BIN)/python docs/tables.py

# Warnings are errors. The variable silences a banner about another program's next version.
site: setup-dev
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict
	@echo "build/site/index.html; with its search: $(BIN)/python -m http.server --bind 127.0.0.1 --directory build/site"

# The trace is not part of the repository; the picture is. It needs Chromium.
picture: setup-dev
	@$(BIN)/python docs/picture.py $(TRACE)

# the figures of the trace engine, against its peers; --million for the long one
bench: setup-dev
	$(BIN)/python benchmarks/scale.py

wheel: setup-dev
	$(BIN)/python -m build --wheel

# What waits for downloads or works on one core runs beside the rest; what such a part prints comes
# when it ends. Installed modules are compiled when they are first imported: most never are.
TOGETHER := $(MAKE) --no-print-directory --jobs $(TESTS_AT_ONCE) --output-sync=target
ci:
	$(TOGETHER) packages slurm setup-dev PIP_OPTIONS=--no-compile
	$(TOGETHER) check compiled tools audit WHERE_REACHED=--where-reached
	$(MAKE) damaged
	$(MAKE) tests
	$(MAKE) without-recorded

# The large libraries that tests start programs with, before several programs compile them at once.
compiled: setup-dev
	@$(BIN)/python -c 'import torch._dynamo, onnxruntime, onnx, pytriton.triton, tritonclient.grpc, tritonclient.http, accelerate, distributed, pandas, matplotlib.pyplot, scipy.stats, mcp.server; from transformers import GPTNeoForCausalLM, ViTForImageClassification'

# Debian packages that only tests use: a browser for the report, node for the trace processor, mksquashfs for images, modules for EasyBuild.
packages:
	@if command -v apt-get >/dev/null 2>&1 && [ "$$(id -u)" = 0 ]; then \
		want=""; command -v chromium >/dev/null 2>&1 || want="$$want chromium"; \
		command -v modulecmd >/dev/null 2>&1 || want="$$want environment-modules"; \
		command -v mksquashfs >/dev/null 2>&1 || want="$$want squashfs-tools"; \
		command -v node >/dev/null 2>&1 || want="$$want nodejs"; command -v npm >/dev/null 2>&1 || want="$$want npm"; \
		if [ -n "$$want" ]; then apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$want >/dev/null; fi; \
	fi

# A real Slurm for tests/slurm, which start one of two nodes; only what is missing is installed. Slurm opens
# libpmix.so, which comes with the development package alone. After `packages`, as one apt-get runs at a time.
SLURM_PACKAGES := slurm-wlm slurm-wlm-basic-plugins munge libpmix-dev
slurm: packages
	@missing=; for name in $(SLURM_PACKAGES); do \
		[ "$$(dpkg-query -W -f='$${db:Status-Status}' $$name 2>/dev/null)" = installed ] || missing="$$missing $$name"; done; \
	if [ -z "$$missing" ]; then echo "Slurm: Debian's packages are here already"; \
	elif ! command -v apt-get >/dev/null 2>&1; then echo "Slurm: not installed, as there is no apt-get here; its tests skip"; \
	elif [ "$$(id -u)" != 0 ]; then echo "Slurm: not installed, as only root can; its tests skip ($$missing )"; \
	else echo "Slurm: installing$$missing"; \
		$(APT_INSTALL) $$missing >/dev/null || { apt-get update -qq && $(APT_INSTALL) $$missing >/dev/null; } || \
			echo "Slurm: not installed, as apt-get failed; its tests skip"; \
	fi
APT_INSTALL = DEBIAN_FRONTEND=noninteractive timeout 300 apt-get install -y -qq --no-install-recommends

# A newer Slurm beside the machine's, in a root of its own, and the tests of what srun's plug-ins for
# MPI set there. TESTS=tests/slurm runs all tests of the cluster on it. Ends with 3 where it cannot be had.
slurm24: setup-dev
	@$(BIN)/python -m tests.tools.get_slurm24
	SLURM_OF_TESTS=24 $(BIN)/python -m pytest -q $(or $(TESTS),tests/slurm/test_srun.py)

clean:
	rm -rf $(VENV) .tools build dist *.egg-info .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
