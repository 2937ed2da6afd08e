package scale

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheBoundsOfRecordAreValid(t *testing.T) {
	_, err := BoundsOfRecord()
	require.NoError(t, err)
}

func TestFaultyBoundsAreRefused(t *testing.T) {
	const rest = `
budget: {exact: {idle: {}}}
daemon: {exact: {idle: {}}}
daemonset: {exact: {idle: {}}}
jobs: {exact: {idle: {}}}
spread: {exact: {idle: {}}}
statefulset: {exact: {idle: {}}}
`
	for name, tt := range map[string]struct{ text, want string }{
		"an unknown key":             {"cloneset: {exact: {idle: {writs: {}}}}", `unknown field "cloneset.exact.idle.writs"`},
		"a key twice":                {"cloneset: {exact: {idle: {events: 1, events: 2}}}", `key "events" already set`},
		"an unknown feature":         {"cloneset: {exact: {idle: {}}}\nclonset: {exact: {idle: {}}}", `clonset: Unsupported value: "clonset"`},
		"a feature without bounds":   {"", "cloneset: Required value"},
		"no exact bounds":            {"cloneset: {relative: {up: {memoryMiB: 1}}}", "cloneset.exact: Required value"},
		"a ratio to nothing":         {"cloneset: {exact: {idle: {}}, relative: {up: {cpu: 1}}}", "cloneset.relative[up].to: Required value"},
		"a negative count":           {"cloneset: {exact: {up: {writes: {create pods: -1}}}}", "cloneset.exact[up].writes.create pods: Invalid value"},
		"negative Events":            {"cloneset: {exact: {up: {events: -1}}}", "cloneset.exact[up].events: Invalid value"},
		"a negative mean":            {"cloneset: {exact: {idle: {}}, relative: {up: {memoryMiB: -1}}}", "cloneset.relative[up].memoryMiB: Invalid value"},
		"a kind that varies and not": {"cloneset: {exact: {up: {writes: {create pods: 1}, varying: [create pods]}}}", "cloneset.exact[up].varying[0]: Duplicate value"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseBounds([]byte(tt.text + rest))
			assert.ErrorContains(t, err, tt.want)
		})
	}
}
