# make demo   set up, run the demonstration and write its reports below demo-run/report.html
# make test   set up and run the tests, but for the slow ones
# make slow   claims that train at full size, simulations, slow outside judges
# make quick  the tests of one stage alone: no training, no study, no other process; for the inner loop
# make explore  the tests with hypothesis, on many cases drawn anew
# make golden  the stored runs of every study, made anew where a change is meant to alter their reports
# make pictures  the pictures of the README and the docs, made anew (needs Chromium)
# make check  format, lint, types, layers
# make protocols  every shipped spec to its end, at reduced size, with times and main tables; tens of minutes
# make bench  measure speed against the budgets
# make simulate  coverage, width and false claims of intervals on data with a known truth, in half an hour; REPETITIONS=4000 for the tables of the docs
#
# TORCH_INDEX names a package index with small CPU builds of torch, where pip does not find one by itself:
#   make demo TORCH_INDEX=https://…
PYTHON ?= python3
TORCH_INDEX ?=
REPETITIONS ?= 400
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# a worker takes whole files, which build what their tests share once; compiled tests are kept, two thirds of the start
PYTEST = PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX=$(CURDIR)/$(VENV)/pycache $(BIN)/python -m pytest -n 2 --dist loadfile

.PHONY: setup demo test slow quick explore golden pictures check format bench protocols simulate clean

setup: $(READY)

$(READY): requirements.lock pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

demo: $(READY)
	$(BIN)/heatcheck demo --out demo-run

test: $(READY)
	$(PYTEST) -m "not slow"

slow: $(READY)
	$(PYTEST) -m slow

quick: $(READY)
	$(PYTEST) -m "not slow and not whole" $(addprefix --ignore=tests/,cli contracts fitting studies training)

explore: $(READY)
	HEATCHECK_EXAMPLES=explore $(BIN)/python -m pytest -n 2 $$(grep -rl "@given" tests)

golden: $(READY)
	$(BIN)/python -m tests.golden.make

pictures: $(READY)
	$(BIN)/heatcheck demo --only localization --out demo-run
	$(BIN)/python docs/pictures.py demo-run/localization

check: $(READY)
	$(BIN)/ruff format --check src tests benchmarks docs
	$(BIN)/ruff check src tests benchmarks docs
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/test_layers.py

format: $(READY)
	$(BIN)/ruff format src tests benchmarks docs
	$(BIN)/ruff check --fix src tests benchmarks docs

protocols: $(READY)
	$(BIN)/python -m benchmarks.protocols.run --folder $(VENV)/protocols

bench: $(READY)
	$(BIN)/python benchmarks/scoring.py
	$(BIN)/python benchmarks/similarity.py
	$(BIN)/python benchmarks/spine.py
	$(BIN)/python benchmarks/score_and_tune.py
	$(BIN)/python benchmarks/alignment.py
	$(BIN)/python benchmarks/modality.py
	$(BIN)/python benchmarks/methods.py --json benchmarks/methods.json

SIMULATED := rates auroc slopes confidence subgroups wrong_answers calibration means families best triggers networks seeds hits blame modality modality_claims
.PHONY: $(SIMULATED:%=simulate-%)

simulate: $(SIMULATED:%=simulate-%)

# freed memory is kept for the next repetition (glibc), not handed back to the system: a quarter of the time
simulate-%: export MALLOC_MMAP_THRESHOLD_ = 1073741824
simulate-%: export MALLOC_TRIM_THRESHOLD_ = 2147483648
$(SIMULATED:%=simulate-%): simulate-%: $(READY)
	{ echo "## $*"; $(BIN)/python -m benchmarks.simulations.$* --repetitions $(REPETITIONS); } > $(VENV)/simulated-$*.md
	cat $(VENV)/simulated-$*.md

clean:
	rm -rf $(VENV) demo-run .mypy_cache .ruff_cache .hypothesis
