# One command a gate; CI calls only these. Everything happens in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed

.PHONY: report test test-all check bench paper evidence clean install

install: $(STAMP)

$(STAMP): pyproject.toml requirements/dev.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "asapmodel needs Python 3.11 or newer; set PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --require-hashes -r requirements/dev.txt
	$(BIN)/pip install --quiet --no-deps -e .
	touch $(STAMP)

report: $(STAMP)
	$(BIN)/asapmodel compare paper-default paper-chunked paper-asap --rates 1,4,8
	$(BIN)/asapmodel compare trace-default trace-chunked trace-asap
	$(BIN)/asapmodel report paper-default paper-chunked paper-asap trace-default trace-chunked trace-asap -o report.html --force

test: $(STAMP)
	$(BIN)/python -m pytest -m "not slow" -n 2 --dist loadfile --benchmark-disable

test-all: $(STAMP)
	HYPOTHESIS_PROFILE=explore $(BIN)/python -m pytest -n 2 --benchmark-disable

# mypy runs on a link tree, where every module has its one true name (docs/background/layout.md)
check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	rm -rf build/typecheck && mkdir -p build/typecheck/asapmodel
	ln -s $(CURDIR)/asapmodel/* build/typecheck/asapmodel/
	for d in models solvers studies; do ln -s $(CURDIR)/$$d build/typecheck/asapmodel/$$d; done
	ln -s $(CURDIR)/tests $(CURDIR)/pyproject.toml build/typecheck/
	cd build/typecheck && ../../$(BIN)/mypy --strict -p asapmodel -p tests
	$(BIN)/python -m pytest -q tests/test_structure.py -p no:cacheprovider

bench: $(STAMP)
	$(BIN)/python -m pytest tests/benchmarks --benchmark-only --benchmark-columns=min,median,ops

paper: $(STAMP)
	$(BIN)/python -m asapmodel.studies.paper

evidence: $(STAMP)
	for study in evidence_kernels evidence_deployments evidence_paper when_asynchronous evidence; do \
		$(BIN)/python -m asapmodel.studies.$$study || exit 1; done

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
