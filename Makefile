# One command a chore. `make check` is what CI runs; the other targets are its parts, in the environment .venv.

PYTHON ?= .venv/bin/python
OLD_PYTHON ?= python3.10
NEW_PYTHON ?= python3.13

.PHONY: help check lint types layers test connect delta long stress old new pages fix lock demo

help:       ## this list
	@grep -E '^[a-z]+:.*## |^## ' $(MAKEFILE_LIST) | sed -E 's/^## (.*)/\n\1/; s/^([a-z]+):.*## (.*)/  \1\t\2/' | expand -t 14

## Before a change lands
check:      ## everything that CI runs, in a new environment
	bash .ci/run
lint:       ## ruff: rules and layout
	$(PYTHON) -m ruff check . && $(PYTHON) -m ruff format --check .
types:      ## mypy in strict mode
	$(PYTHON) -m mypy
layers:     ## directions of import
	.venv/bin/lint-imports

## Tests
test:       ## the default run
	$(PYTHON) -m pytest
connect:    ## tests of Spark a second time, over Spark Connect
	$(PYTHON) -m pytest -m connect
delta:      ## tests of Delta on Spark, whose jars are fetched first
	$(PYTHON) -m tests.support.delta_jars; $(PYTHON) -m pytest -m delta
long:       ## what takes minutes
	$(PYTHON) -m pytest -m long && $(PYTHON) -m pytest -m connect_long
stress:     ## processes that load, die and recover at once, for ten minutes
	$(PYTHON) -m tests.races.stress --seconds 600

# pyspark 4.1 leaves its sockets to the collector.
old:        ## the default run on Python 3.10 with pyspark 4.1; ARGS=tests/unit for a part of it
old: .venv-old/made
	.venv-old/bin/python -m pytest -W ignore::pytest.PytestUnraisableExceptionWarning $(ARGS)
new:        ## the default run on Python 3.13; ARGS as above
new: .venv-new/made
	.venv-new/bin/python -m pytest $(ARGS)

.venv-old/made: requirements/test.txt pyproject.toml
	$(OLD_PYTHON) -m venv .venv-old
	grep -v '^pyspark==' requirements/test.txt | .venv-old/bin/pip install -q -r /dev/stdin 'pyspark==4.1.*' -e .
	touch $@
.venv-new/made: requirements/test.txt pyproject.toml
	$(NEW_PYTHON) -m venv .venv-new
	.venv-new/bin/pip install -q -r requirements/test.txt -e .
	touch $@

## Chores
pages:      ## pages whose tables are made from the code
	$(PYTHON) -m tests.support.pages
fix:        ## what ruff mends by itself
	$(PYTHON) -m ruff check --fix . && $(PYTHON) -m ruff format .
demo:       ## films, loaded and asked
	.venv/bin/spark-omnigraph demo

# The newest versions that pyproject.toml allows, for every Python at once.
lock:       ## pins of requirements/test.txt anew
	$(PYTHON) -m pip install -q uv
	( echo '# Everything the checks and tests use, for Python 3.10 to 3.13. Made from pyproject.toml by `make lock`.'; \
	  $(PYTHON) -m uv pip compile pyproject.toml --extra test --universal --python-version 3.10 --upgrade \
	    --no-header --no-annotate --no-emit-index-url --no-emit-find-links -q ) > requirements/test.txt.new
	mv requirements/test.txt.new requirements/test.txt
