# Everything that a developer does, each target from a fresh clone: the environment makes itself.
#
#   make demo    compile the examples with every usable backend and run them (on a GPU if there is one, else simulated)
#   make test    every test, those marked tvm_ffi_abi with the oldest apache-tvm-ffi too, those of TileLang's kernels
#                with TileLang, those of identities with sigstore, those of other tools (Hugging Face's kernels, JAX, Dask,
#                MPI, S3) with these; needs no GPU
#   make explore draw new examples for every law and property, and keep what breaks one in .hypothesis-explore, where the
#                next such run tries it first; ROUNDS=10 for ten times, SEED=7 for the examples of a run that printed it
#   make test-real SOURCES=folder  kernels of other projects, from your copies of these (docs/real-sources.md)
#   make stress  the long proofs of tests/stress, which `make test` leaves out: very many documents, calls, loads, rounds
#   make mutants  plant small mistakes into a copy of the launchers' own code, and see which the laws notice: COUNT=400 for
#                each language, SEED=1, SHARDS=2; resumed where it was ended, results in docs/results
#   make unique  find for each law a planted mistake that no other law catches, SHARDS=2; what tests/mutation/unique.jsonl
#                knows of laws and mistakes that have not changed since is not asked again
#   make lint    ruff, ruff format --check, mypy --strict, clang-format
#   make format  apply the formatters and the safe fixes
#   make docs    build the documentation, warnings are errors
#   make bench   run the benchmarks; those that need a GPU say so where there is none
#   make clean   remove what the other targets made
#
# VENV=path uses, or makes, another environment; PYTHON=python3.12 chooses the interpreter for a new one.
# ARGS='...' is handed to pytest by `make test`, which then leaves out what has folders of its own, and by
# `make stress`; and to the command by `make demo`.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := demo
.DELETE_ON_ERROR:

# Where the environment forbids bytecode, each of the hundreds of processes that tests start would compile all that it
# imports: for some that takes longer than what they test.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
VENV ?= .venv
WORKERS ?= 2
ARGS ?=
ROUNDS ?= 1
MUTANTS_SEED := $(or $(SEED),1)
SEED := $(or $(SEED),$(shell date +%s))

BIN := $(VENV)/bin
# Says which checkout the environment is an editable install of: of two that share one, the other has it made anew.
STAMP := $(VENV)/.trunnion-ready
MANIFESTS := constraints.txt pyproject.toml core/pyproject.toml $(wildcard plugins/*/pyproject.toml) \
    $(wildcard plugins/*/setup.py plugins/*/src/*/*.c plugins/*/src/*/*.h)

# Our own C++ for the host: the launchers' headers, plugins, tests and benchmarks; and the C of plugins.
HOST_CPP := find core plugins benchmarks -type f \
    '(' -name '*.h' -o -name '*.hpp' -o -name '*.cc' -o -path 'plugins/*/src/*.c' ')'

# Pinned, quiet, and never asking a question.
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet --no-input
INSTALL := $(PIP) install --constraint constraints.txt

# The oldest apache-tvm-ffi that core allows. The environment has the newest; this one lies in a folder of its own, and
# comes first for whoever is given that folder.
OLDEST_TVM_FFI := $(shell sed -n 's/^cpp = \["apache-tvm-ffi>=\(.*\)"\]$$/\1/p' core/pyproject.toml)
OLDEST := $(VENV)/oldest-tvm-ffi

# TileLang in a folder of its own, with what it needs that the environment lacks, and the newest apache-tvm-ffi that it
# admits: the environment has a newer one.
TILELANG_TVM_FFI := 0.1.12
TILELANG_NEEDS := tilelang cloudpickle ml-dtypes psutil tqdm z3-solver
TILELANG := $(VENV)/tilelang

# The operators of cosmic-ray in a folder of their own, without all that its command line needs.
MUTANTS := $(VENV)/mutants
MUTANTS_NEEDS := cosmic-ray parso attrs stevedore

# sigstore in a folder of its own, with what it needs that the environment lacks.
SIGSTORE := $(VENV)/sigstore
SIGSTORE_NEEDS := sigstore sigstore-models sigstore-rekor-types rfc3161-client rfc8785 tuf securesystemslib id pyjwt

SOURCES ?=
COUNT ?= 400
SHARDS ?= $(WORKERS)

# Those that take what is built here, or build for us, in a folder of their own, with what they need that the environment
# lacks: 650 MB. Laid out as an environment is, since MPI's library lies beside Python's packages.
OTHER_TOOLS := $(VENV)/other-tools
OTHER_TOOLS_NEEDS := \
    aiobotocore aiohappyeyeballs aiohttp aioitertools aiosignal anyio attrs blinker boto3 botocore cffi click \
    cloudpickle cryptography dask distributed Flask flask-cors frozenlist h11 httpcore2 httpx2 huggingface_hub \
    importlib_metadata itsdangerous jax jax-tvm-ffi jaxlib jmespath kernels lazy-importer locket ml-dtypes moto mpi4py \
    mpich msgpack multidict opt-einsum partd propcache psutil pycparser python-dateutil responses s3fs s3transfer scipy six tblib toolz tornado tqdm \
    truststore Werkzeug wrapt xmltodict yarl zict zipp

.PHONY: venv demo test test-oldest test-tilelang test-mutants test-sigstore test-other-tools test-real explore stress mutants unique lint format docs bench clean

venv: $(STAMP)

# Two steps, because editable installs without build isolation need the build backend to be there already; without
# isolation the build backend is the pinned one.
ifneq ($(shell cat $(STAMP) 2>/dev/null),$(CURDIR))
.PHONY: $(STAMP)
endif
$(STAMP): $(MANIFESTS)
	@echo 'making $(VENV): it installs about 2 GB of packages, which takes some minutes and is done once'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) --upgrade pip
	$(INSTALL) --group build
	@echo 'making $(VENV): downloading and installing torch, CUDA compilers and the plugins, silently'
	$(INSTALL) --no-build-isolation --group dev \
	    --editable 'core[cli,conformance,cpp,sign]' --editable 'plugins/nvrtc[compiler,fatbin]' \
	    --editable 'plugins/tvm_ffi[headers]' --editable 'plugins/cutedsl[compiler]' \
	    --editable 'plugins/tilelang[headers]'
	if test -f "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h"; then \
	    $(INSTALL) --no-build-isolation --editable plugins/fastcall; \
	else \
	    echo 'trunnion-fastcall is left out: this Python has no Python.h (on Debian, install python3-dev)'; \
	fi
	echo '$(CURDIR)' >$@
	@echo 'making $(VENV): done'

demo: $(STAMP)
	@echo 'compiling and running the examples with each backend: one or two minutes on 2 cores'
	$(BIN)/trunnion demo $(ARGS)

# Files mostly stay together, and the laws, which take the most time and are one file, are shared. The few laws for each
# version of apache-tvm-ffi are for the others: all laws are checked with the newest.
test: $(STAMP) $(if $(ARGS),,test-oldest test-tilelang test-mutants test-sigstore test-other-tools)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m 'not gpu' \
	    $(if $(ARGS),$(ARGS),--ignore=tests/versions/test_laws.py)

# Only the places that have such tests: collecting all of them takes longer than running these.
test-oldest: $(OLDEST)/.ready
	PYTHONPATH=$(abspath $(OLDEST))$${PYTHONPATH:+:$$PYTHONPATH} TRUNNION_TVM_FFI=$(OLDEST_TVM_FFI) \
	    $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m 'tvm_ffi_abi and not gpu' \
	    core/tests/codegen/cpp core/tests/sim/test_exchange.py core/tests/test_image_exchange.py plugins/tvm_ffi/tests \
	    plugins/cutedsl/tests/test_adapter.py tests/versions

# Without its dependencies, which the environment has, and without the constraints, which name the newest.
$(OLDEST)/.ready: $(STAMP)
	rm -rf $(OLDEST)
	$(PIP) install --no-deps --target $(OLDEST) apache-tvm-ffi==$(OLDEST_TVM_FFI)
	touch $@

# What needs TileLang: the run of everything leaves these folders out. The last one's need a GPU too: here they are only
# collected.
test-tilelang: $(TILELANG)/.ready
	PYTHONPATH=$(abspath $(TILELANG))$${PYTHONPATH:+:$$PYTHONPATH} \
	    $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m 'not gpu' \
	    plugins/tilelang/tests tests/tilelang tests/gpu/tilelang_kernels

# Without their dependencies, which the environment has.
$(TILELANG)/.ready: $(STAMP)
	rm -rf $(TILELANG)
	$(PIP) install --no-deps --target $(TILELANG) apache-tvm-ffi==$(TILELANG_TVM_FFI) \
	    $(foreach name,$(TILELANG_NEEDS),$(shell grep '^$(name)==' constraints.txt))
	touch $@

# The one part of the tests of `make mutants` that needs cosmic-ray.
test-mutants: $(MUTANTS)/.ready
	PYTHONPATH=$(abspath $(MUTANTS))$${PYTHONPATH:+:$$PYTHONPATH} \
	    $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m 'not gpu' tests/mutation/drawing

$(MUTANTS)/.ready: $(STAMP)
	rm -rf $(MUTANTS)
	$(PIP) install --no-deps --target $(MUTANTS) \
	    $(foreach name,$(MUTANTS_NEEDS),$(shell grep '^$(name)==' constraints.txt))
	touch $@

# What verifies identities. The library would look for a network: the tests refuse it one.
test-sigstore: $(SIGSTORE)/.ready
	PYTHONPATH=$(abspath $(SIGSTORE))$${PYTHONPATH:+:$$PYTHONPATH} \
	    $(BIN)/python -m pytest -m 'not gpu' tests/sigstore

# Without their dependencies, which the environment has.
$(SIGSTORE)/.ready: $(STAMP)
	rm -rf $(SIGSTORE)
	$(PIP) install --no-deps --target $(SIGSTORE) \
	    $(foreach name,$(SIGSTORE_NEEDS),$(shell grep '^$(name)==' constraints.txt))
	touch $@

# What needs them: the run of everything leaves this folder out. One file after another: each starts processes of its own.
test-other-tools: $(OTHER_TOOLS)/.ready
	PYTHONPATH="$$(cat $(OTHER_TOOLS)/.ready)$${PYTHONPATH:+:$$PYTHONPATH}" $(BIN)/python -m pytest -m 'not gpu' \
	    tests/other_tools

# Without their dependencies, which are named, or which the environment has. The stamp says where the packages are.
$(OTHER_TOOLS)/.ready: $(STAMP)
	rm -rf $(OTHER_TOOLS)
	$(PIP) install --no-deps --ignore-installed --prefix $(abspath $(OTHER_TOOLS)) \
	    $(foreach name,$(OTHER_TOOLS_NEEDS),$(shell grep '^$(name)==' constraints.txt))
	ls -d $(abspath $(OTHER_TOOLS))/lib/python*/site-packages >$@

# Kernels of other projects, of whose sources nothing is here. A copy that is missing is an error which says how to get it.
test-real: $(STAMP)
	TRUNNION_SOURCES=$(abspath $(SOURCES)) $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m 'not gpu' \
	    tests/real_sources $(ARGS)

# Each round with the next seed. By test, not by file: the laws, which take the most time, are one file.
explore: $(STAMP)
	broken=0; \
	for seed in $$(seq $(SEED) $$(($(SEED) + $(ROUNDS) - 1))); do \
	    echo "exploring with SEED=$$seed"; \
	    $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m '(hypothesis or law) and not gpu' \
	        --hypothesis-profile=explore --hypothesis-seed=$$seed $(ARGS) || broken=1; \
	done; \
	exit $$broken

# Test by test, not file by file: a file's shards are as many as the workers can share.
stress: $(STAMP)
	$(BIN)/python -m pytest -n $(WORKERS) --dist load tests/stress tests/mutation/trials $(ARGS)

# The seed of a sample, unlike that of `make explore`, is the same unless another is asked for.
mutants: $(MUTANTS)/.ready
	PYTHONPATH=$(abspath $(MUTANTS))$${PYTHONPATH:+:$$PYTHONPATH} $(BIN)/python tests/mutation/mutants.py \
	    --count $(COUNT) --seed $(MUTANTS_SEED) --shards $(SHARDS) --results docs/results $(ARGS)

unique: $(STAMP)
	$(BIN)/python tests/mutation/prove_unique.py --shards $(SHARDS) --results docs/results/unique.md $(ARGS)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(HOST_CPP) -exec $(BIN)/clang-format --dry-run --Werror {} +

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(HOST_CPP) -exec $(BIN)/clang-format -i {} +

docs: $(STAMP)
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

# All of them, though one misses its budget.
bench: $(STAMP)
	missed=0; \
	for script in benchmarks/*.py; do $(BIN)/python "$$script" || test $$? -eq 77 || missed=1; done; \
	exit $$missed

clean:
	rm -rf .venv .mutants dist build plugins/*/build plugins/*/src/*/*.so docs/_build .coverage .coverage.* .hypothesis .hypothesis-explore .mypy_cache .pytest_cache .ruff_cache
	find . -path ./.git -prune -o -type d -name __pycache__ -prune -exec rm -rf {} +
