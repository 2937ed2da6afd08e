# Developer tools, pinned in .tools and built on first use.

TOOLS          := $(CURDIR)/.tools/bin
CONTROLLER_GEN := $(TOOLS)/controller-gen
CRDSCHEMA      := $(TOOLS)/crdschema
MANIFESTS      := $(TOOLS)/manifests
MODCHECK       := $(TOOLS)/modcheck
APIREFERENCE   := $(TOOLS)/apireference
GOLANGCI_LINT  := $(TOOLS)/golangci-lint

$(CONTROLLER_GEN): .tools/go.mod
	GOWORK=off go -C .tools build -o bin/ tool
	@touch $@

$(CRDSCHEMA) $(MANIFESTS) $(MODCHECK) $(APIREFERENCE): $(TOOLS)/%: $(wildcard .tools/cmd/*/*.go) .tools/go.mod
	GOWORK=off go -C .tools build -o bin/ ./cmd/...
	@touch $(CRDSCHEMA) $(MANIFESTS) $(MODCHECK) $(APIREFERENCE)

$(GOLANGCI_LINT): .tools/lint/go.mod
	GOWORK=off go -C .tools/lint build -o ../bin/ tool
	@touch $@
