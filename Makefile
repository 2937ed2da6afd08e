# Flotilla: make help

.DEFAULT_GOAL := help
SHELL := /bin/bash -o pipefail

# The modules are those of the workspace.
MODULES  := $(shell sed -n 's|^[[:space:]]*\./||p' go.work)
# Where `make images` pushes; empty pushes to the registry of the local cluster.
REGISTRY ?=
# Which platforms `make images` builds for.
PLATFORMS ?= linux/amd64,linux/arm64
# How many nodes `make up` and `make demo` start.
NODES ?= 3

# How long `make soak` plays, which tests (a regular expression), from which seed, and how many worlds at a time.
export DURATION PLANS FROM PROCS
# Which fuzz targets `make fuzz` runs (a regular expression), each for DURATION=1m.
export TARGET
# How often tests run to find those that fail by chance, beside how many busy processes, and the seed of the first order.
export TIMES LOAD SEED
# Whose operator `make bench GATE=1` measures, with how many pods, and how often.
export FEATURE PODS ROUNDS
# On which release of Kubernetes tests run; empty means the newest one.
export FLOTILLA_KUBERNETES ?= $(KUBERNETES)

# The cluster of `make demo KUBECONFIG=... REGISTRY=...`, which is there already; a KUBECONFIG of the environment alone is none.
GIVEN = $(if $(REGISTRY)$(filter command%,$(origin KUBECONFIG)),--kubeconfig '$(KUBECONFIG)' --registry '$(REGISTRY)')

# Builds a program of this repository and runs it. What go says, such as its downloads, is shown when it fails.
run = .make/quiet "building $(notdir $1)" go build -o bin/cmd/$(notdir $1) $1 && bin/cmd/$(notdir $1)

include .make/tools.mk

.PHONY: help all build test test-unit test-e2e test-changed deflake soak fuzz reproduce faults endure bench generate lint lint-api vulncheck verify images demo up down
.PHONY: release release-check release-plan release-prepare release-rehearsal release-tag

help: ## list what there is
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9%-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

all: generate build test ## generate, build and test everything

build: $(MODULES:%=build-%) ## compile every module against its own go.mod
$(MODULES:%=build-%): build-%: ; @$(MAKE) --no-print-directory -C $* build

##

test: ## unit, API server and end-to-end tests
	@./test/run all

test-unit: ## unit and API server tests of every module; test-cloneset: those of one
	@./test/run unit

test-e2e: ## end-to-end tests on real nodes; KUBERNETES=1.33.13 chooses a release
	@./test/run e2e

test-changed: ## tests of the modules that differ from BASE=commit, by default the last one, and of all that require these
	@./test/run changed $(BASE)

$(MODULES:%=test-%): test-%: ; @./test/run module $*

deflake: ## tests of all modules or MODULE=name, TIMES=20 times in random orders, beside LOAD=4 busy processes; lists those that failed
	@./test/run deflake $(MODULE)

reproduce: ## tests of the worst problems of docs/contributing/troubles.md: each passes, and fails without its fix; ROW=name chooses one and shows the failure
	@$(call run,./test/cmd/reproduce) $(ROW)

soak: ## new random worlds of all plans for DURATION=1h, on PROCS cores; PLANS=regexp and FROM=seed choose
	@./test/run soak

faults: ## breaks parts of a real cluster during rollouts of all features and judges every state; FAULT=name chooses, CLUSTER=name uses one that runs
	@$(call run,./test/cmd/faults) $(if $(FAULT),--fault $(FAULT)) $(if $(CLUSTER),--cluster $(CLUSTER))

endure: ## random work of all operators for DURATION=2h on a simulated cluster; fails if their memory, goroutines, queues or metrics grow
	@$(call run,./test/cmd/endurance) $(if $(DURATION),--duration $(DURATION))

fuzz: ## every fuzz target of all modules for DURATION=1m, one after the other; TARGET=regexp chooses
	@./test/run fuzz

bench: ## benchmarks of the plans and of the operator under load; GATE=1 fails if an operator exceeds test/scale/bounds.yaml; FEATURE, PODS and ROUNDS=5 choose
	@./test/run $(if $(GATE),gate,bench)

##

generate: $(CONTROLLER_GEN) $(CRDSCHEMA) $(MANIFESTS) $(APIREFERENCE) ## deepcopy functions, CRDs and docs/api from the API types, manifests from FEATURE/config/feature.yaml, the patch for Argo CD from kustomize/argocd, the counts of docs/performance.md from docs/performance/run.json, the verdicts of docs/reliability.md from docs/reliability/run.json, pictures of docs from docs/pictures/*.yaml
	@for m in $(MODULES); do echo "generate $$m"; (cd $$m && GOWORK=off go generate ./...) || exit 1; done
	@$(MANIFESTS) .
	@$(APIREFERENCE) .
	@$(call run,./test/cmd/argocd) .
	@$(call run,./test/cmd/gate) publish
	@$(call run,./test/cmd/faults) publish
	@$(call run,./test/cmd/pictures) .

lint: $(GOLANGCI_LINT) ## the linters of .golangci.yaml on every module
	@for m in $(MODULES) test/prometheus .tools; do echo "lint $$m"; (cd $$m && GOWORK=off $(GOLANGCI_LINT) run ./...) || exit 1; done

lint-api: $(KUBE_API_LINT) ## the API conventions of Kubernetes, as .golangci-api.yaml has them, on every module of API types
	@for m in $(filter %/api,$(MODULES)); do echo "lint-api $$m"; (cd $$m && GOWORK=off $(KUBE_API_LINT) run -c $(CURDIR)/.golangci-api.yaml ./...) || exit 1; done

# The database of known vulnerabilities.
VULNDB ?= https://vuln.go.dev

vulncheck: $(GOVULNCHECK) ## known vulnerabilities in what the code of every module reaches; VULNDB=file:///folder names a copy of the database
	@.make/vulncheck $(GOVULNCHECK) $(VULNDB) $(MODULES)

verify: generate $(MODCHECK) lint lint-api ## what must hold before a change is merged; leaves no diff
	@$(MODCHECK) .
	@for m in $(MODULES); do $(MAKE) --no-print-directory -C $$m vet tidy-check || exit 1; done
	@echo "render every overlay"; cd kustomize && GOWORK=off go test -run 'Overlay|Component' ./render
	@git diff --exit-code -- . || { echo "verify: generated files differ from what is committed" >&2; exit 1; }
	@$(MAKE) --no-print-directory release-check
	@$(MAKE) --no-print-directory vulncheck
	@echo "verify: clean"

##

images: ## build every manager's image and push it to REGISTRY, or to the local cluster
	@registry='$(REGISTRY)'; [ "$$registry" ] || registry=$$($(call run,./test/cluster/cmd/cluster) registry) && \
	  $(call run,./kustomize/release/cmd/images) --platforms $(PLATFORMS) --registry "$$registry"

release-plan: ## which modules changed since their tag, and which must follow, as what versions
	@$(call run,./kustomize/release/cmd/release) plan

release-check: ## no module breaks programs that import its last release, unless a note announces it
	@$(call run,./kustomize/release/cmd/release) check

release-prepare: ## changelogs, manifests and requirements of the planned versions, for a commit
	@$(call run,./kustomize/release/cmd/release) prepare

release: ## images, install files, charts, SBOMs and checksums of the prepared versions into TO=folder; REGISTRY names and PUSH=1 pushes images and charts
	@$(call run,./kustomize/release/cmd/release) build $(TO) --platforms $(PLATFORMS) $(if $(MACHINES),--machines $(MACHINES)) $(if $(ONLY),--only $(ONLY)) $(if $(REGISTRY),--registry $(REGISTRY)) $(if $(PUSH),--push)

release-rehearsal: ## a release of a copy of this work tree in TO=folder, for this machine, installed from its files on an API server
	@$(call run,./kustomize/release/cmd/release) rehearse $(or $(TO),bin/rehearsal)
	@.make/rehearsal $(or $(TO),bin/rehearsal)

release-tag: ## the tags of the prepared versions; pushes none
	@$(call run,./kustomize/release/cmd/release) tag

##

up: ## start a real cluster on this machine
	@$(call run,./test/cluster/cmd/cluster) up --nodes $(NODES)

down: ## stop it and remove every trace of it
	@$(call run,./test/cluster/cmd/cluster) down

demo: ## watch a real pod change its image and stay itself; KUBECONFIG=file REGISTRY=host/path for a cluster that is there
	@$(call run,./test/cmd/demo) --nodes $(NODES) $(GIVEN)

demo-all: ## every feature on one cluster, one after the other

demo-%: ## the same for another feature: demo-statefulset
	@$(call run,./test/cmd/demo) --nodes $(NODES) $(GIVEN) --feature $*
