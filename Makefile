# The main commands are make demo and make test. They run in .venv, which is created if it does not exist.
SHELL := /bin/bash

# The newest working interpreter of a list of versions, on the path or installed by pyenv.
runs = $(shell $(1) -c '' >/dev/null 2>&1 && echo $(1))
candidates = python$(1) $(wildcard $(HOME)/.pyenv/versions/$(1).*/bin/python$(1))
find_python = $(firstword $(foreach version,$(1),$(foreach program,$(call candidates,$(version)),$(call runs,$(program)))))

ifeq ($(origin PYTHON),undefined)
PYTHON := $(or $(call find_python,3.12 3.11 3.10 3.13 3.14),python3)
endif
VENV ?= .venv
BENCH_VENV ?= .venv-bench
BIN := $(VENV)/bin
# The onnxruntime to install: onnxruntime-training up to Python 3.12, the newest plain onnxruntime above.
EXTRA ?= $(shell $(or $(wildcard $(BIN)/python),$(PYTHON)) tests/release/extras.py)
STAMP := $(VENV)/.installed
LINT_STAMP := $(VENV)/.installed-lint
DOCS_STAMP := $(VENV)/.installed-docs
OTHERS_STAMP := $(VENV)/.installed-others
RELEASE_STAMP := .venv-release/.installed
PLUGIN := $(shell find tests/example_plugin -name '*.py' -o -name '*.cfg' -o -name '*.toml' 2>/dev/null | grep -v build/)

# Without bytecode, every process that a test starts compiles the package again.
unexport PYTHONDONTWRITEBYTECODE

# Tests run in up to four processes, each with one BLAS and OpenMP thread, as more threads are slower.
PARALLEL := -q -n auto --maxprocesses 4 --dist worksteal
test test-slow test-rest test-others test-runtimes: export OMP_NUM_THREADS = 1
test test-slow test-rest test-others test-runtimes: export OPENBLAS_NUM_THREADS = 1

# uv installs in a third of pip's time; pip does it where uv cannot, as with a proxy that only pip knows.
install = put() { $(BIN)/python -m uv pip install --quiet --python $(BIN)/python "$$@" || \
    $(BIN)/python -m pip install --quiet "$$@"; }; put

.PHONY: demo demo-dask test mutation faults fuzz audit test-slow test-rest test-others test-bridges test-runtimes test-openvino test-all test-3.10 test-3.11 test-3.12 test-3.13 test-3.14 lint format bench against-torch coverage real-files docs site dist sbom release-checks matrix clean

$(STAMP): setup.cfg pyproject.toml $(PLUGIN)
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	    { echo "ortlearn needs Python 3.10 or later: make PYTHON=python3.13 ..."; exit 1; }
	@echo "$(VENV): $$($(BIN)/python --version), with the extra $(EXTRA)"
	-@$(BIN)/python -m pip install --quiet --upgrade pip "uv>=0.9"
	@$(install) -e ".[$(EXTRA),test,plot,progress]"
	@$(install) --no-deps ./tests/example_plugin
	@rm -rf tests/example_plugin/build tests/example_plugin/src/*.egg-info
	@touch $@

$(LINT_STAMP): $(STAMP)
	@$(install) -e ".[lint]"
	@touch $@

$(DOCS_STAMP): $(STAMP)
	@$(install) -e ".[docs]"
	@touch $@

$(OTHERS_STAMP): $(STAMP)
	@$(install) -e ".[others,mlflow,tensorboard,optuna,river]"
	@touch $@

# Tools of a release have their own environment.
$(RELEASE_STAMP):
	@test -x .venv-release/bin/python || $(PYTHON) -m venv .venv-release
	.venv-release/bin/python -m pip install --quiet "build>=1.2" "cyclonedx-bom>=7" packaging "twine>=6.1" "uv>=0.9"
	@touch $@

demo: $(STAMP)
	$(BIN)/python examples/demo.py

# Trains on a cluster of two processes on this machine, one of which is killed during the training.
demo-dask: $(STAMP)
	$(BIN)/python examples/demo_dask.py

# TESTS="tests/models tests/training" runs the tests of some folders only.
test: $(STAMP)
	$(BIN)/python -m pytest $(TESTS) -m "not slow and not rest and not runtimes and not openvino" $(PARALLEL)

# Changes plugins by 1 %, one at a time; fails if no test detects a change. MUTATION="'rule:*'" changes all rules.
mutation: $(OTHERS_STAMP)
	$(BIN)/python -m tests.mutation $(or $(MUTATION),--sample 30 --seed 0)

# Kills trainings, fills disks, alters files, trains in threads and processes at once.
# Writes the table of docs/reliability.md; fails if state is lost, a process hangs, or an error is unclear.
faults: $(STAMP)
	$(BIN)/python -m benchmarks.faults --write docs/reliability.md

# Looks up advisories about the installed versions in a public database; needs a network, and no other command runs it.
audit: $(STAMP)
	@test -x .venv-audit/bin/pip-audit || { $(PYTHON) -m venv .venv-audit && \
	    .venv-audit/bin/python -m pip install --quiet pip-audit; }
	$(BIN)/python -m pip freeze --exclude-editable | grep -v ' @ ' > .venv-audit/requirements.txt
	.venv-audit/bin/pip-audit --strict --disable-pip --no-deps -r .venv-audit/requirements.txt

test-slow: $(STAMP)
	$(BIN)/python -m pytest -m "slow and not rest" $(PARALLEL)

# Runs the cases of parametrised tests whose values other cases have too: all combinations.
test-rest: $(STAMP)
	$(BIN)/python -m pytest -m rest $(PARALLEL)

# Tests training packages in Node and in a browser; skips Node without npm, and the browser without Chromium.
test-runtimes: $(STAMP)
	@if command -v npm >/dev/null; then for runner in node web; do \
	    (cd runtimes/$$runner && npm install --ignore-scripts --no-audit --no-fund --no-package-lock --loglevel=error) || exit 1; \
	    done; else echo "npm is not installed: tests in Node and in a browser are skipped."; fi
	$(BIN)/python -m pytest -m runtimes $(PARALLEL) tests/runtimes

# Tests OpenVINO on the CPU, with onnxruntime-openvino and as a plugin of the newest onnxruntime.
test-openvino: PYTHON := $(or $(call find_python,3.12 3.11),$(PYTHON))
test-openvino:
	for extra in openvino openvino-plugin; do \
	    $(MAKE) .venv-$$extra/.installed VENV=.venv-$$extra PYTHON=$(PYTHON) EXTRA=$$extra && \
	    .venv-$$extra/bin/python -m pytest -q tests/openvino || exit 1; done

# Tests estimators of XGBoost, CatBoost, imbalanced-learn and category_encoders, and callbacks for MLflow, TensorBoard
# and Optuna, which make test skips if not installed.
test-others: $(OTHERS_STAMP)
	$(BIN)/python -m pytest $(PARALLEL) tests/models/others tests/callbacks/trackers

# Tests the bridges to JAX and torch, and attributions beside captum and shap, in a separate environment.
test-bridges:
	$(MAKE) .venv-bridges/.installed VENV=.venv-bridges EXTRA=onnxruntime
	.venv-bridges/bin/python -m pip install --quiet -e ".[jax,torch]" captum shap
	.venv-bridges/bin/python -m pytest -q tests/functions

# Runs make test with onnxruntime-training on Python 3.11 and 3.12, and with the newest onnxruntime on 3.13.
test-all: test-3.11 test-3.12 test-3.13

test-3.10 test-3.11 test-3.12 test-3.13 test-3.14: test-3.%:
	@test -n "$(call find_python,3.$*)" || { echo "make $@ needs Python 3.$*"; exit 1; }
	$(MAKE) test VENV=.venv-3.$* PYTHON=$(call find_python,3.$*)

lint: $(LINT_STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/basedpyright --level error --pythonpath $(BIN)/python tests/annotations/user_code.py
	$(BIN)/python -m benchmarks.code_size --check

format: $(LINT_STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Writes docs/performance.md; packages that cannot be installed are named and not measured.
bench:
	$(MAKE) $(BENCH_VENV)/.installed VENV=$(BENCH_VENV) PYTHON=$(or $(call find_python,3.11),$(PYTHON))
	$(BENCH_VENV)/bin/python -m benchmarks.install_peers
	$(BENCH_VENV)/bin/python -m benchmarks.run $(BENCH)
	$(BENCH_VENV)/bin/python -m benchmarks.bench_gradients
	$(BENCH_VENV)/bin/python -m benchmarks.bench_recurrent

# Measures every model of scikit-learn and writes docs/coverage.md; fails if a target is missed.
coverage: $(STAMP)
	$(BIN)/python -m benchmarks.model_zoo --jobs 2 --write docs/coverage.md --check
	$(BIN)/python -m benchmarks.bench_functions --write docs/differentiable.md

# Downloads the wheels of models by name, tries every ONNX file in them, in onnx's own wheel and of converters,
# and writes docs/onnx_files.md; fails if a target is missed.
real-files: $(STAMP)
	$(BIN)/python -m benchmarks.real_files --write docs/onnx_files.md

# Runs five harnesses under atheris for FUZZ_SECONDS each: files, saved estimators, packages, parquet pages, gradients.
# Inputs that fail are in build/fuzz; FUZZ="opening" chooses harnesses.
FUZZ_SECONDS ?= 60
fuzz: PYTHON := $(or $(call find_python,3.12 3.13 3.11),$(PYTHON))
fuzz:
	$(MAKE) .venv-fuzz/.installed VENV=.venv-fuzz PYTHON=$(PYTHON) EXTRA=onnxruntime
	.venv-fuzz/bin/python -m pip install --quiet "atheris>=3"
	.venv-fuzz/bin/python -m tests.fuzzing --seconds $(FUZZ_SECONDS) $(FUZZ)

# Compares updates and schedules with torch.optim, in the environment of the benchmark.
against-torch:
	$(MAKE) $(BENCH_VENV)/.installed VENV=$(BENCH_VENV) PYTHON=$(or $(call find_python,3.11),$(PYTHON))
	$(BENCH_VENV)/bin/python -m benchmarks.install_peers
	$(BENCH_VENV)/bin/python -m pytest -q tests/against_torch

# Writes docs/reference from the plugins that are installed, runs every example of the documents, and builds the site.
docs: $(DOCS_STAMP)
	$(BIN)/python -m docs.reference_pages
	$(BIN)/python -m pytest -q README.md docs
	$(MAKE) site

# Builds the site in build/docs from the pages as they are: the gallery runs, and a warning is an error.
site: $(DOCS_STAMP)
	rm -rf docs/reference/api docs/gallery build/docs
	$(BIN)/python -m sphinx -W --keep-going -q -j auto -b html -d build/doctrees docs build/docs
	$(BIN)/python -m docs.site_checks build/docs
	@echo "The pages are in build/docs/index.html."

# Builds the archives in dist, checks their content and metadata, and uses the wheel in fresh environments on every
# supported Python that is installed. DIST="3.10 3.13" names those that must be there.
dist: $(RELEASE_STAMP)
	.venv-release/bin/python -m tests.release dist $(DIST)

# Runs the long measurements before a release, and records each with date and commit in docs/explanation/commands.md.
# CHECKS="matrix fuzz" chooses.
release-checks: $(RELEASE_STAMP)
	.venv-release/bin/python -m tests.release checks $(CHECKS)

# Writes the bill of materials of an installation of the wheel in dist, in the format CycloneDX, to build/sbom.
sbom: $(RELEASE_STAMP)
	.venv-release/bin/python -m tests.release sbom

# Runs a choice of tests with the lowest versions of dependencies together and alone, with each scikit-learn, and with the
# newest versions on each Python, and writes each outcome into docs/compatibility.md. MATRIX="floors 'scikit-learn-*'"
# chooses environments, MATRIX=--resume those that have not passed at this commit.
matrix: $(RELEASE_STAMP)
	.venv-release/bin/python -m tests.release matrix $(MATRIX)

clean:
	rm -rf runtimes/*/node_modules
	rm -rf .venv .venv-* build dist docs/gallery docs/reference/api *.egg-info demo-output bench-output .pytest_cache .mypy_cache .ruff_cache
