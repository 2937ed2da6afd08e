# What every module can do on its own. A module's Makefile sets MODULE and includes this file.
#
#   make -C core test            all tests of the module, against its own go.mod
#   make -C core test RUN=Plan   those whose name matches

RUN ?= .
# Flags of go test.
TESTFLAGS ?=
# How long the tests of one package may take.
TIMEOUT ?= 50m
# The workspace gives all modules one list of dependencies and would hide that one does not stand alone.
export GOWORK := off

PACKAGES ?= $(shell go list ./...)
# Pure packages start no goroutine, so the race detector has nothing to find in them and would only
# make their many random worlds ten times slower. A module adds its own by UNRACED.
CORE := github.com/flotilla-project/flotilla/core
PURE = $(filter $(CORE)/plan/action $(CORE)/pods/% $(CORE)/workloads/% %/simulate %/conversion %/plan \
	%/recreate/node %/advancedcronjob/schedule $(UNRACED),$(PACKAGES))

.PHONY: build vet test tidy tidy-check
build: ## compile the module
	go build ./...

vet: ## look for suspicious code
	go vet ./...

# Tests that call t.Parallel wait for API servers more than they compute. What vet finds is looked for by make vet, once, and
# not for all dependencies with and without the race detector.
test: ## unit and API server tests of the module, with the race detector
	@status=0; \
	$(if $(PURE),go test -vet=off $(TESTFLAGS) -timeout $(TIMEOUT) -run '$(RUN)' $(PURE) || status=1;) \
	$(if $(filter-out $(PURE),$(PACKAGES)),go test -vet=off -race $(TESTFLAGS) -parallel 4 -timeout $(TIMEOUT) -run '$(RUN)' $(filter-out $(PURE),$(PACKAGES)) || status=1;) \
	exit $$status

tidy: ## bring go.mod and go.sum in order
	go mod tidy

tidy-check: ## fail when go.mod or go.sum are out of order
	go mod tidy -diff
