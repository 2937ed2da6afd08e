# Developer tools, pinned in .tools and built on first use.

TOOLS          := $(CURDIR)/.tools/bin
CONTROLLER_GEN := $(TOOLS)/controller-gen
CRDSCHEMA      := $(TOOLS)/crdschema
MANIFESTS      := $(TOOLS)/manifests
MODCHECK       := $(TOOLS)/modcheck
APIREFERENCE   := $(TOOLS)/apireference
GOLANGCI_LINT  := $(TOOLS)/golangci-lint
GOVULNCHECK    := $(TOOLS)/govulncheck
KUBE_API_LINT  := $(TOOLS)/golangci-lint-kube-api-linter

$(CONTROLLER_GEN): .tools/go.mod
	GOWORK=off go -C .tools build -o bin/ tool
	@touch $@

$(CRDSCHEMA) $(MANIFESTS) $(MODCHECK) $(APIREFERENCE): $(TOOLS)/%: $(wildcard .tools/cmd/*/*.go) .tools/go.mod
	GOWORK=off go -C .tools build -o bin/ ./cmd/...
	@touch $(CRDSCHEMA) $(MANIFESTS) $(MODCHECK) $(APIREFERENCE)

# Each alone, because one of them takes minutes and the others are wanted without it.
$(GOLANGCI_LINT): .tools/lint/go.mod
	GOWORK=off go -C .tools/lint build -o ../bin/ github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@touch $@

$(KUBE_API_LINT): .tools/lint/go.mod
	GOWORK=off go -C .tools/lint build -o ../bin/ sigs.k8s.io/kube-api-linter/cmd/golangci-lint-kube-api-linter
	@touch $@

$(GOVULNCHECK): .tools/lint/go.mod
	GOWORK=off go -C .tools/lint build -o ../bin/ golang.org/x/vuln/cmd/govulncheck
	@touch $@
