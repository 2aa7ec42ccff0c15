PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
PORTIONS := app databases domain eval graph models nodes oracles prompts stores
TYPECHECK := build/typecheck

.PHONY: demo test lint clean

demo: $(VENV)/.installed
	$(BIN)/merit demo

test: $(VENV)/.installed
	$(BIN)/pytest

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	rm -rf $(TYPECHECK) && mkdir -p $(TYPECHECK)/merit_sql
	for portion in $(PORTIONS); do ln -s ../../../$$portion $(TYPECHECK)/merit_sql/$$portion; done
	MYPYPATH=$(TYPECHECK) $(BIN)/mypy $(TYPECHECK)/merit_sql

$(VENV)/.installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) build .mypy_cache .ruff_cache .pytest_cache
