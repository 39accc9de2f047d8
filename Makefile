# One command a chore. `make check` is what CI runs; the other targets are its parts, in the environment .venv.

PYTHON ?= .venv/bin/python

.PHONY: check lint types layers test long connect pages fix lock demo

check:      ; bash .ci/run
lint:       ; $(PYTHON) -m ruff check . && $(PYTHON) -m ruff format --check .
types:      ; $(PYTHON) -m mypy
layers:     ; .venv/bin/lint-imports
test:       ; $(PYTHON) -m pytest
connect:    ; $(PYTHON) -m pytest -m connect
long:       ; $(PYTHON) -m pytest -m long
pages:      ; $(PYTHON) -m tests.support.pages
fix:        ; $(PYTHON) -m ruff check --fix . && $(PYTHON) -m ruff format .
demo:       ; .venv/bin/spark-omnigraph demo

# The newest versions that pyproject.toml allows, for every Python at once.
lock:
	$(PYTHON) -m pip install -q uv
	( echo '# Everything the checks and tests use, for Python 3.10 to 3.13. Made from pyproject.toml by `make lock`.'; \
	  $(PYTHON) -m uv pip compile pyproject.toml --extra test --universal --python-version 3.10 --upgrade \
	    --no-header --no-annotate --no-emit-index-url --no-emit-find-links -q ) > requirements/test.txt.new
	mv requirements/test.txt.new requirements/test.txt
