# make demo: install and optimize an example. make app: the app in a browser. make test: everything CI checks. make help: the rest.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO_HOME := .demo

.PHONY: help demo app test check gpu-test test-live clean

help:
	@grep -E '^# make ' Makefile | sed 's/^# //; s/\. /\n/g'

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	touch $@

$(VENV)/.tested: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[test]'
	touch $@

demo: $(VENV)/.installed
	$(BIN)/warpsmith optimize examples/layernorm_gelu.py --home $(DEMO_HOME) --population 6 --generations 4

# The app, at http://127.0.0.1:8501
app: $(VENV)/.installed
	$(BIN)/warpsmith app

test: check
	$(BIN)/python -m pytest -n auto --dist loadfile

check: $(VENV)/.tested
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

# Asks the endpoint of OPENAI_BASE_URL or OPENAI_API_KEY for real answers, with WARPSMITH_MODELS.
test-live: $(VENV)/.tested
	$(BIN)/python -m pytest -m live tests/live -s

# Needs an NVIDIA GPU.
gpu-test: $(VENV)/.tested
	$(BIN)/python -m pytest -m gpu tests/gpu

clean:
	rm -rf $(VENV) $(DEMO_HOME) warpsmith-out .mypy_cache .pytest_cache .ruff_cache .hypothesis
