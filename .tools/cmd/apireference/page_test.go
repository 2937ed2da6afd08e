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
}

// Course is where it goes.
type Course struct {
	// to is a port. The default is home.
	// +kubebuilder:default=home
	To string ` + "`json:\"to,omitempty\"`" + `
}

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
| ` + "`crew` | [PodTemplateSpec](https://kubernetes.io/docs/reference/generated/kubernetes-api/v1.36/#podtemplatespec-v1-core) | **Required.** crew sails it: a \\| b. |" + `
| ` + "`flags` | map of [Flag](#flag) | flags are what it shows. |" + `

## Flag

Flag is a sign.

| value | meaning |
|---|---|
| ` + "`\"A\"` | Alpha asks for care. |" + `
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
