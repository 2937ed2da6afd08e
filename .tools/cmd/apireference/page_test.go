package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const source = `package v1beta1

// Fleet is many ships.
// +kubebuilder:object:root=true
type Fleet struct {
	metav1.TypeMeta   ` + "`json:\",inline\"`" + `
	metav1.ObjectMeta ` + "`json:\"metadata,omitempty\"`" + `

	// spec says which.
	// +optional
	Spec FleetSpec ` + "`json:\"spec,omitempty\"`" + `
}

// FleetList is a list.
// +kubebuilder:object:root=true
type FleetList struct{}

// FleetSpec says which ships are wanted.
type FleetSpec struct {
	Course ` + "`json:\",inline\"`" + `
	// ships is how many.
	// +kubebuilder:default=3
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be 0 or more"
	Ships *int32 ` + "`json:\"ships,omitempty\"`" + `
	// crew sails it: a | b.
	Crew corev1.PodTemplateSpec ` + "`json:\"crew\"`" + `
	// flags are what
	// it shows.
	Flags map[string]Flag ` + "`json:\"flags,omitempty\"`" + `
	// ports are where it calls.
	// +kubebuilder:validation:MinItems=0
	Ports Ports ` + "`json:\"ports,omitempty\"`" + `
	// load is a number or a percentage.
	Load intstr.IntOrString ` + "`json:\"load,omitempty\"`" + `
	// berths are numbers or ranges.
	Berths []intstr.IntOrString ` + "`json:\"berths,omitempty\"`" + `
	// seal is a hash.
	Seal []byte ` + "`json:\"seal,omitempty\"`" + `
	// conditions are those of Kubernetes.
	Conditions []metav1.Condition ` + "`json:\"conditions,omitempty\"`" + `
	// failures says what follows.
	Failures *batchv1.PodFailurePolicy ` + "`json:\"failures,omitempty\"`" + `
	// sea says which.
	Sea Sea ` + "`json:\"sea,omitempty\"`" + `
}

// Course is where it goes.
type Course struct {
	// to is a port. The default is home.
	// +kubebuilder:default=home
	To string ` + "`json:\"to,omitempty\"`" + `
}

// Ports are harbours.
type Ports []Port

// Port is a harbour.
type Port struct {
	// name is its name.
	Name string ` + "`json:\"name,omitempty\"`" + `
}

// Sea is chosen by labels.
type Sea struct {
	metav1.LabelSelector ` + "`json:\",inline\"`" + `
}

// Condition is not that of Kubernetes.
type Condition struct{}

// Flag is a sign.
type Flag string

const (
	// Alpha asks for care.
	Alpha Flag = "A"
)

// Unused is of no field.
type Unused struct{}
`

const want = `
## Fleet

Fleet is many ships.

| field | type | meaning |
|---|---|---|
| ` + "`spec` | [FleetSpec](#fleetspec) | spec says which. |" + `

## FleetSpec

FleetSpec says which ships are wanted.

| field | type | meaning |
|---|---|---|
| ` + "`to` | string | to is a port. The default is home. |" + `
| ` + "`ships` | integer | ships is how many. Default: `3`. Checked: must be 0 or more. |" + `
| ` + "`crew` | [PodTemplateSpec](https://kubernetes.io/docs/reference/generated/kubernetes-api/v1.37/#podtemplatespec-v1-core) | **Required.** crew sails it: a \\| b. |" + `
| ` + "`flags` | map of [Flag](#flag) | flags are what it shows. |" + `
| ` + "`ports` | list of [Port](#port) | ports are where it calls. |" + `
| ` + "`load` | number or percentage | load is a number or a percentage. |" + `
| ` + "`berths` | list of number or string | berths are numbers or ranges. |" + `
| ` + "`seal` | string (base64) | seal is a hash. |" + `
| ` + "`conditions` | list of [Condition](https://kubernetes.io/docs/reference/generated/kubernetes-api/v1.37/#condition-v1-meta) | conditions are those of Kubernetes. |" + `
| ` + "`failures` | [PodFailurePolicy](https://kubernetes.io/docs/reference/generated/kubernetes-api/v1.37/#podfailurepolicy-v1-batch) | failures says what follows. |" + `
| ` + "`sea` | [Sea](#sea) | sea says which. |" + `

## Flag

Flag is a sign.

| value | meaning |
|---|---|
| ` + "`\"A\"` | Asks for care. |" + `

## Port

Port is a harbour.

| field | type | meaning |
|---|---|---|
| ` + "`name` | string | name is its name. |" + `

## Sea

Sea is chosen by labels.

| field | type | meaning |
|---|---|---|
| ` + "`matchLabels` | map of string | labels that must be there with these values. |" + `
| ` + "`matchExpressions` | list of [LabelSelectorRequirement](https://kubernetes.io/docs/reference/generated/kubernetes-api/v1.37/#labelselectorrequirement-v1-meta) | requirements of labels, which must all hold. |" + `
`

func TestPage(t *testing.T) {
	root := t.TempDir()
	for folder, text := range map[string]string{"core/api/workload": "package workload\n", "fleet/api/v1beta1": source} {
		folder = filepath.Join(root, folder)
		require.NoError(t, os.MkdirAll(folder, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(folder, "types.go"), []byte(text), 0o600))
	}
	require.NoError(t, run(root))
	text, err := os.ReadFile(filepath.Join(root, "docs", "api", "fleet.md"))
	require.NoError(t, err)
	assert.Contains(t, string(text), "\n# API of fleet\n")
	_, kinds, _ := strings.Cut(string(text), "\n## ")
	assert.Equal(t, want, "\n## "+kinds)
}
