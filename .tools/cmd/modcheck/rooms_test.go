package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRoomFaults(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		want []string
	}{
		"rules are inside":                     {"web/internal/web/plan/plan.go", nil},
		"programs for users may play the plan": {"web/whatif/whatif.go", nil},
		"nothing else is public": {
			"web/plan/plan.go", []string{"web/plan/plan.go: packages of a feature are in cmd, config, internal, setup, whatif"},
		},
		"nor is the module itself a package": {
			"web/web.go", []string{"web/web.go: packages of a feature are in cmd, config, internal, setup, whatif"},
		},
		"core has layers instead": {"core/plan/action/a.go", nil},
	} {
		t.Run(name, func(t *testing.T) {
			files := repository(map[string]string{c.file: "package p"})
			workspace, err := Load(files)
			require.NoError(t, err)
			var faults []string
			for _, m := range workspace.Modules[:2] {
				more, err := RoomFaults(files, m)
				require.NoError(t, err)
				faults = append(faults, more...)
			}
			assert.Equal(t, c.want, faults)
		})
	}
}
