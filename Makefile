# SPDX-License-Identifier: Apache-2.0
# `make` alone lists the targets. Variables: PYTHON (interpreter to set up with), ROS (jazzy or
# kilted, of the wheels), VENV, OUT, MINUTES (of test-late), WORKERS (of tests), and for demo and
# identify URDF, BASE, TIP.
SHELL := /bin/bash
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV ?= .venv
OUT ?= demo_output
# Of tests at a time: more than cores, as many wait for messages.
WORKERS ?= 3
MINUTES ?= 60

BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
# Which ROS 2 the wheels are of; where .venv has one, that one.
ROS ?= $(patsubst wheels-%,%,$(filter wheels-%,$(shell cat $(VENV)/source_of_ros 2>/dev/null)))
WHEELS := wheels$(addprefix -,$(filter-out jazzy,$(ROS)))
INSTALLED := $(STAMPS)/installed-$(or $(ROS_DISTRO),$(WHEELS))
INTERFACES := $(STAMPS)/interfaces
PACKAGE := $(STAMPS)/package
DOCS := $(STAMPS)/docs
BENCH := $(STAMPS)/bench

# Whatever runs here talks on this machine's loopback only, on a domain that a robot or another user
# of the machine is unlikely to have; tests pick their own.
export ROS_AUTOMATIC_DISCOVERY_RANGE := LOCALHOST
export ROS_DOMAIN_ID ?= $(shell echo $$(( $$$$ % 100 + 101 )))
export ROS_LOG_DIR ?= $(abspath $(VENV))/ros_log
# Else each of the many processes that tests start would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

# A ROS installation finds the packages built here only where they are sourced.
WITH_ROS := $(if $(ROS_DISTRO),source $(VENV)/local_setup.bash &&)

.PHONY: help setup demo identify-demo check test test-late test-faults test-all test-long bench lint docs clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(PACKAGE)  ## make the virtual environment with everything, ROS 2 included [ROS=kilted]

demo: setup  ## an arm in a physics engine holds and tracks on our torques [URDF= BASE= TIP= OUT=]
	@$(WITH_ROS) $(BIN)/robodyn demo --output '$(OUT)' \
	    $(if $(URDF),--urdf '$(URDF)') $(if $(BASE),--base '$(BASE)') $(foreach T,$(TIP),--tip '$T')

identify-demo: setup  ## an arm with a wrong URDF is excited, recorded, identified [URDF= BASE= TIP= SEED= OUT=]
	@$(WITH_ROS) $(BIN)/robodyn identify-demo --output '$(OUT)' $(if $(SEED),--seed '$(SEED)') \
	    $(if $(URDF),--urdf '$(URDF)') $(if $(BASE),--base '$(BASE)') $(foreach T,$(TIP),--tip '$T')

check: setup  ## the quick answer, in minutes: numbers, the core, one node of each kind [ROOM=control]
	@$(WITH_ROS) $(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile \
	    -m 'not longer and not slow' $(if $(ROOM),test/$(ROOM))

test: setup  ## run the tests, the slow ones left out
	@$(WITH_ROS) $(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile -m 'not slow'

test-late: docs  ## build the site, run what is left but for test-faults, within MINUTES
	@$(WITH_ROS) $(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile --hypothesis-profile fixed \
	    -m '(slow or hypothesis) and not fault and not alone' --until $$(( $$(date +%s) + 60 * $(MINUTES) ))

test-faults: setup  ## run faults and what is by the wall clock, one after the other: a quarter of an hour
	@$(WITH_ROS) $(BIN)/python -m pytest -q -n 1 -m 'slow and (fault or alone)'

test-all: setup  ## run all the tests, those of properties on fresh examples
	@$(WITH_ROS) $(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile --hypothesis-profile fresh

test-long: setup  ## run the tests of properties on a hundred times as many examples (hours)
	@$(WITH_ROS) $(BIN)/python -m pytest -q -n $(WORKERS) -m hypothesis --hypothesis-profile long

bench: setup $(BENCH)  ## run the benchmarks
	@$(WITH_ROS) set -e; for script in benchmarks/*.py; do $(BIN)/python "$$script"; done

lint: setup  ## ruff, mypy, clang-format, codespell, XML, manifests, and what the pages name
	@$(BIN)/ruff check && $(BIN)/ruff format --check --quiet
	@$(BIN)/mypy
	@git ls-files '*.[ch]' '*.[ch]pp' | xargs $(BIN)/clang-format --dry-run -Werror
	@git ls-files '*.py' '*.md' '*.rst' '*.[ch]' '*.[ch]pp' '*.yaml' | xargs $(BIN)/codespell
	@$(BIN)/python environment/check_xml.py
	@$(BIN)/python environment/check_packages.py
	@set -e; for script in write_parameter_table write_plot_layout draw_compiled write_arms_table; \
	    do $(BIN)/python docs/$$script.py --check; done
	@$(BIN)/python docs/check_pages.py
	@$(WITH_ROS) $(BIN)/python docs/write_fault_table.py --check

docs: setup $(DOCS)  ## build the documentation as a site in build/docs, its links checked
	@$(BIN)/python -m sphinx -q -W --keep-going -b html docs build/docs
	@$(BIN)/python docs/check_site.py build/docs
	@echo 'Open build/docs/index.html'

clean:  ## remove the virtual environment and everything made by a target
	rm -rf $(VENV) $(OUT) build install log .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(INSTALLED): $(wildcard environment/*.txt) environment/install.sh environment/use_local_headers.py
	@environment/check_prerequisites.sh '$(PYTHON)'
	@environment/install.sh '$(VENV)' '$(PYTHON)' '$(or $(ROS),jazzy)'
	@mkdir -p $(STAMPS) && rm -f $(STAMPS)/* && touch $@

$(DOCS): $(INSTALLED) environment/docs.txt
	@echo 'Installing what the documentation is built with.'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r environment/docs.txt
	@touch $@

$(BENCH): $(INSTALLED) environment/bench.txt
	@echo 'Installing what the benchmarks compare with.'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r environment/bench.txt
	@touch $@

$(INTERFACES): $(INSTALLED) environment/build.sh \
        $(shell find robodyn_interfaces -type f)
	@echo 'Building robodyn_interfaces: half a minute to three.'
	@environment/build.sh '$(VENV)' robodyn_interfaces
	@touch $@

$(PACKAGE): $(INTERFACES) package.xml setup.py setup.cfg scripts/robodyn \
        $(wildcard cmake/* robodyn_ros/control/core/* robodyn_ros/compiled/c/*.[ch]) \
        $(wildcard launch/* config/* urdf/*)
	@echo 'Building robodyn_ros: a minute or two, for the core of its control pipeline.'
	@environment/build.sh '$(VENV)' robodyn_ros
	@touch $@
