# Every target sets up what it needs. `make demo` and `make test` are all a newcomer has to know.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
MODEL  := smollm2-135m-instruct

.PHONY: demo test test-all check lint format bench setup model constraints clean

demo: model  ## run the main job: documents, tools and a real language model, in parallel
	mkdir -p out
	$(BIN)/weft run examples/brief/brief.yaml --compare --timeline out/brief.html

test: model  ## run the tests (all but those marked slow, gpu or net)
	$(BIN)/python -m pytest -q -m "not slow and not gpu and not net"

test-all: model  ## run every test that this machine can run
	$(BIN)/python -m pytest -q

check: lint test  ## everything that must hold before a commit

lint: setup  ## format, lint, types and layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_layers.py tests/test_import.py

format: setup  ## put the sources into shape
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup  ## measure the engine beside asyncio and its peers
	mkdir -p out
	$(BIN)/python -m evals.engine --json out/engine.json --plot out/engine.png

setup: $(READY)

model: setup
	$(BIN)/weft model pull $(MODEL)

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e ".[local,dev]"
	touch $@

constraints: setup  ## rewrite constraints.txt from what is installed now
	$(BIN)/python -m pip freeze --exclude-editable | sed 's/+cpu//' > constraints.txt

clean:
	rm -rf $(VENV) .venv-peers out .mypy_cache .ruff_cache .pytest_cache .hypothesis
