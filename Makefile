# Two commands matter: make demo, make test. Everything runs in .venv, made where it is missing.
PYTHON ?= $(shell command -v python3.12 >/dev/null 2>&1 && python3.12 -c '' >/dev/null 2>&1 && echo python3.12 || echo python3)
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
LINT_STAMP := $(VENV)/.installed-lint

.PHONY: demo test test-slow lint format bench docs clean

$(STAMP): setup.cfg pyproject.toml $(wildcard tests/example_plugin/*.* tests/example_plugin/*/*.* tests/example_plugin/*/*/*.*)
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 13))' || \
		{ echo "onnxruntime-training needs Python 3.10 to 3.12: make PYTHON=python3.11 ..."; exit 1; }
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -e ".[training,test,plot,progress]"
	$(BIN)/python -m pip install --quiet --no-deps ./tests/example_plugin
	@rm -rf tests/example_plugin/build
	@touch $@

$(LINT_STAMP): $(STAMP)
	$(BIN)/python -m pip install --quiet -e ".[lint]"
	@touch $@

demo: $(STAMP)
	$(BIN)/python examples/demo.py

test: $(STAMP)
	$(BIN)/python -m pytest -m "not slow"

test-slow: $(STAMP)
	$(BIN)/python -m pytest -m slow

lint: $(LINT_STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(LINT_STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP)
	$(BIN)/python benchmarks/bench_mlp.py

docs: $(STAMP)
	$(BIN)/python -m pytest -q README.md docs

clean:
	rm -rf $(VENV) build dist *.egg-info demo-output bench-output .pytest_cache .mypy_cache .ruff_cache
