# Two commands set everything up: `make judge` runs the main job, `make test` runs the tests.
# `make test-slow` runs the rest of them: simulations, killed runs, whole applications, trainers.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

SEED ?= 0
MINUTES ?= 10

PYTEST := $(BIN)/python -m pytest -n auto --dist worksteal

.PHONY: judge test test-slow lint fuzz bench docs sample screens clean

judge: $(VENV)/.run
	$(BIN)/python -m eval.judge --judge heuristic --data sample

test: $(VENV)/.test
	$(PYTEST) -m "not slow"

test-slow: $(VENV)/.test
	$(PYTEST) -m slow

lint: $(VENV)/.test
	$(BIN)/python -m ruff check
	$(BIN)/python -m ruff format --check
	$(BIN)/python -m mypy

fuzz: $(VENV)/.test
	$(BIN)/python -m tests.fuzz --seed $(SEED) --minutes $(MINUTES)

bench: $(VENV)/.test
	$(BIN)/python -m benchmarks.judge_throughput
	$(BIN)/python -m benchmarks.load

# The bundled sample anew, with the applications of today; then the screens that show it.
sample: $(VENV)/.test
	$(BIN)/python -m tests.environments.recording.sample_again
	$(MAKE) screens

screens: $(VENV)/.test
	TRAJUDGE_WRITE_SCREENS=1 $(BIN)/python -m pytest -q tests/test_readme.py tests/test_docs.py \
		-k "the_screen_is_what or tutorial_works"

docs: $(VENV)/.test
	mkdir -p build/mermaid && cd build/mermaid && npm pack --silent mermaid@11 && \
		tar xzf mermaid-11.*.tgz package/dist/mermaid.min.js || echo "diagrams stay text"
	$(BIN)/python -m mkdocs build --strict

$(VENV)/.run: requirements.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -r requirements.txt -e .
	touch $@

$(VENV)/.test: requirements.txt requirements-dev.txt requirements-published.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -r requirements-dev.txt -e .
	$(BIN)/python -m pip install --quiet --no-deps -r requirements-published.txt
	touch $@ $(VENV)/.run

clean:
	rm -rf $(VENV) build dist
