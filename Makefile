PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
PORTIONS := app databases domain eval graph models nodes oracles prompts stores
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt
TYPECHECK := build/typecheck

.PHONY: demo test lint clean

demo: $(VENV)/.core
	$(BIN)/merit demo

test: $(VENV)/.installed
	$(BIN)/pytest

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	rm -rf $(TYPECHECK) && mkdir -p $(TYPECHECK)/merit_sql
	for portion in $(PORTIONS); do ln -s ../../../$$portion $(TYPECHECK)/merit_sql/$$portion; done
	MYPYPATH=$(TYPECHECK) $(BIN)/mypy $(TYPECHECK)/merit_sql

$(VENV)/.core: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) --editable .
	touch $@

$(VENV)/.installed: $(VENV)/.core
	$(INSTALL) --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) build .mypy_cache .ruff_cache .pytest_cache
