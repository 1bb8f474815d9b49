# The commands of the course. A Python of the right age, make and a network are
# all that a machine must have; what else is missing is said in one sentence.
# `make lab PYTHON=python3.12` makes .venv with that Python, where there is none.

.DEFAULT_GOAL := help
.PHONY: help lab teach hub demo check test test-all site record bench release release-check

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' Makefile

lab: ## install into .venv, fill work/ with the chapters, open JupyterLab
	@sh tools/setup.sh instructor
	@.venv/bin/course lab

teach: ## the instructor's JupyterLab with formgrader
	@sh tools/setup.sh instructor
	@.venv/bin/course teach

hub: ## a class server: JupyterHub on this machine (docs/server.md)
	@sh tools/setup.sh instructor,server
	@.venv/bin/python deploy/start.py

demo: ## an instructor's day on a synthetic class
	@sh tools/setup.sh instructor
	@.venv/bin/course demo

check: ## what belongs to the files changed since the last commit
	@sh tools/setup.sh instructor,dev
	@.venv/bin/python tools/run_checks.py --changed

test: ## everything that CI runs
	@sh tools/setup.sh instructor,dev
	@.venv/bin/python tools/run_checks.py

test-all: ## the same, and the slow tests too
	@sh tools/setup.sh instructor,dev
	@.venv/bin/python tools/run_checks.py --slow

site: ## the chapters as a static site in build/site/html, with figures
	@sh tools/setup.sh instructor,dev
	@.venv/bin/python tools/site/build.py

record: ## run every chapter here and record its figures
	@sh tools/setup.sh instructor,dev
	@.venv/bin/python tools/record.py

bench: ## grading of every chapter measured against stock nbgrader (hours)
	@sh tools/setup.sh instructor,dev
	@.venv/bin/python tools/bench.py

release: ## make release VERSION=0.2.0: version, changes, commit, tag
	@sh tools/setup.sh instructor,dev
	@.venv/bin/python tools/release.py $(VERSION)

release-check: ## once per release: every Python, both ends of torch's range
	@sh tools/setup.sh instructor,dev
	@.venv/bin/python tools/release_check.py
