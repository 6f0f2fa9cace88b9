# Everything is installed into .venv when a target first needs it; .ci/install says how.

SHELL := /bin/sh
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

BIN := .venv/bin
ARGS ?=
FLOOR := 95
# The modules with the rules in them: every branch is tested.
PURE := memory/_core memory/_dead memory/_delayed memory/_fifo memory/_heaps memory/_leases memory/_ready pool/balance pool/goal pool/hours pool/rates pool/retry pool/ruler pool/schedule pool/settle postgres/hint postgres/ready postgres/server_clock admit check ids text timeline waiting
CORE := $(wildcard src/headrace/*.pxd src/headrace/*.pyx src/headrace/memory/*.py src/headrace/memory/*.pxd) $(addprefix src/headrace/,timeline.py ids.py record.py admit.py)
comma := ,
empty :=
space := $(empty) $(empty)
PURE_FILES := $(subst $(space),$(comma),$(PURE:%=src/headrace/%.py))

.PHONY: help demo test unit lint coverage bench soak postgres docs clean

help: ## list what can be done here
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' Makefile

demo: .venv/has-base ## see it work: thousands of real files, and a worker killed half-way
	@$(BIN)/python -m examples.index.demo $(ARGS)

test: lint ## every gate: lint, types, layers, tests, coverage; what CI runs
	@rm -f .coverage .coverage.*
	@$(BIN)/coverage run -m pytest $(ARGS)
	@$(BIN)/coverage combine -q
	@$(BIN)/coverage report --fail-under=$(FLOOR) >.gate.txt || { cat .gate.txt; exit 1; }
	@$(BIN)/coverage report --fail-under=100 --include=$(PURE_FILES) >.gate.txt || { cat .gate.txt; exit 1; }

unit: .venv/has-test ## the tests alone; choose with ARGS="-k lease"
	@$(BIN)/pytest $(ARGS)

lint: .venv/has-test ## style, types, and who may import whom
	@$(BIN)/ruff check -q .
	@$(BIN)/ruff format -q --check .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-cache >.gate.txt || { cat .gate.txt; exit 1; }

coverage: .venv/has-test ## what the last `make test` did not reach
	@$(BIN)/coverage report

bench: .venv/has-bench ## measure it on this machine
	@$(BIN)/python -m benchmarks $(ARGS)

soak: .venv/has-test ## the long run: workers and servers killed all the time; SCALE=20 times 600 jobs, or 10,000
	@HEADRACE_SOAK=$(or $(SCALE),20) $(BIN)/pytest tests/scenarios/test_soak.py tests/scenarios/test_pg_soak.py -o faulthandler_timeout=0 $(ARGS)

postgres: .venv/has-test ## the tests of that backend on each PostgreSQL from 13 to 18, or on VERSIONS="13 18"
	@VERSIONS="$(VERSIONS)" .ci/postgres $(ARGS)

docs: .venv/has-docs ## build the site into site/
	@$(BIN)/zensical build --clean --strict

clean: ## remove all that was made here, .venv included
	@rm -rf .venv .venv.tmp index-work site build dist .coverage .coverage.* .gate.txt
	@rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .cache src/*.egg-info
	@find src tests examples benchmarks -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

# What is compiled is compiled anew when its source has changed.
.venv/has-%: pyproject.toml .ci/install setup.py $(CORE)
	@.ci/install $*
