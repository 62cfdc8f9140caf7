# Every target sets up what it needs in .venv; nothing else on the machine changes, except that Debian's
# python3-venv is installed where Python cannot make an environment without it, that the tests install
# Debian's chromium where there is no Chromium or Chrome, and that Prefect keeps its history in ~/.prefect,
# or where PREFECT_HOME says.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DATA ?= data
ROWS ?= 10000000
CASES ?= 5000

.PHONY: release docs test test-slow test-nightly mutants test-newest fuzz faults check format clean benchmark benchmark-engine \
	benchmark-generation benchmark-scale benchmark-pipeline benchmark-beat benchmark-account benchmark-history recording

release: $(VENV)/ready  ## release the bundled example into out/
	$(BIN)/ppsyn release examples/adult/release.yaml

docs: $(VENV)/ready  ## the site, into out/site; a broken link or a page that nothing leads to is an error
	$(BIN)/sphinx-build --quiet --fail-on-warning --fresh-env docs out/site
	@echo "open out/site/index.html"

test: $(VENV)/ready $(VENV)/browser  ## the fast tests
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

test-slow: $(VENV)/ready $(VENV)/browser  ## the tests that take minutes
	$(BIN)/python -m pytest -n 2 -m slow

# What is pinned says nothing of what comes next: an environment of its own, without constraints.txt.
test-newest: $(VENV)/ready  ## schedules on the newest versions that are allowed; once a week
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(VENV)-newest
	$(BIN)/uv pip install --quiet --upgrade --python $(VENV)-newest/bin/python --editable ".[all]" --group dev
	$(BIN)/uv pip freeze --quiet --exclude-editable --python $(VENV)-newest/bin/python | diff constraints.txt - || true
	$(VENV)-newest/bin/python -m pytest -m slow tests/flows/test_schedules.py

test-nightly: $(VENV)/ready  ## the tests that draw noise by the million
	$(BIN)/python -m pytest -n 2 -m nightly

mutants: $(VENV)/ready  ## plant faults one at a time, and see that the tests of the claim each breaks tell; writes docs/mutants.md
	PYTHONPATH=tests $(BIN)/python -m mutants

fuzz: $(VENV)/ready  ## bad input to every command; CASES=number, SEED=number, by default the day's
	cd tests && ../$(BIN)/python -m fuzzing --cases $(CASES) $(if $(SEED),--seed $(SEED)) --out ../out/fuzz

faults: $(VENV)/ready  ## kills, stores, disks and clocks in trouble, damage: what becomes of runs; as root; writes docs/research-log.md
	cd tests && PYTHONPATH=. unshare -m ../$(BIN)/python -m support.faults

check: $(VENV)/ready  ## what must be clean before a commit
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/basedpyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports

format: $(VENV)/ready
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

benchmark-engine: $(VENV)/ready  ## the model engine against mbi; DATA=folder of benchmark tables
	PYTHONPATH=tests $(BIN)/python -m performance.engine --data-dir $(DATA)

benchmark: $(VENV)/ready  ## mechanisms against each other, on the bundled Adult table
	$(BIN)/ppsyn benchmark

benchmark-generation: $(VENV)/ready  ## rows a second against a plain sampler
	PYTHONPATH=tests $(BIN)/python -m performance.generation

benchmark-scale: $(VENV)/ready  ## counting, Dask, a whole release and generation on a large table; ROWS=number
	PYTHONPATH=tests $(BIN)/python -m performance.scale --rows $(ROWS)

benchmark-pipeline: $(VENV)/ready  ## a whole release against the bare library
	PYTHONPATH=tests $(BIN)/python -m performance.overhead examples/adult/release.yaml

benchmark-beat: $(VENV)/ready  ## what the beat of draws costs a release on an idle machine
	PYTHONPATH=tests $(BIN)/python -m performance.beat examples/adult/release.yaml

benchmark-account: $(VENV)/ready  ## a release, a budget and an audit by the charges that an account has
	PYTHONPATH=tests $(BIN)/python -m performance.years examples/adult/release.yaml

benchmark-history: $(VENV)/ready  ## what Prefect's database keeps of releases, and what is left once it forgot them
	cd tests && ../$(BIN)/python -m support.history

recording: $(VENV)/ready  ## a schedule that fires, is killed and is refused, as text; half an hour, as root; writes docs/results/schedule.txt
	cd tests && ../$(BIN)/python -m support.recording

$(VENV)/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV) || (apt-get update && apt-get install -y python3-venv && $(PYTHON) -m venv $(VENV))
	$(BIN)/pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python --constraint constraints.txt --editable ".[all]" --group dev
	touch $@

# The reports of releases are tested in a real browser; Playwright's own is for systems without apt.
$(VENV)/browser: $(VENV)/ready
	command -v chromium || command -v chromium-browser || command -v google-chrome || command -v google-chrome-stable \
		|| (apt-get update && apt-get install -y --no-install-recommends chromium fonts-dejavu-core) \
		|| $(BIN)/playwright install chromium
	touch $@

clean:
	rm -rf $(VENV) $(VENV)-newest out .pytest_cache .ruff_cache .hypothesis .import_linter_cache
