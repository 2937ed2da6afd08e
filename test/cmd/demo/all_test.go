package main

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/kustomize/catalog"
)

// A demo is one of a feature that can be installed.
func TestDemosAreOfFeatures(t *testing.T) {
	demos := slices.DeleteFunc(names(), func(name string) bool { return name == everything })
	found, err := catalog.Select(demos...)
	require.NoError(t, err)
	assert.Len(t, found, len(demos))
}

func TestDemosInTurn(t *testing.T) {
	for _, tt := range []struct {
		name, fails string
		begun       []string
		summary     string
	}{
		{"all are shown", "", []string{"a", "b", "c"}, "✓ a              1 s\n✓ b              1 s\n✓ c              1 s\n"},
		{"one fails", "b", []string{"a", "b"}, "✓ a              1 s\n✗ b              1 s  failed\n- c            not shown\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var begun []string
			clock := time.Time{}
			results := inTurn([]string{"a", "b", "c"}, func() time.Time { return clock }, func(name string) error {
				begun = append(begun, name)
				clock = clock.Add(time.Second)
				if name == tt.fails {
					return errors.New("it does not")
				}
				return nil
			})
			assert.Equal(t, tt.begun, begun)
			assert.Equal(t, tt.summary, ink{}.summary(results))
			if tt.fails == "" {
				require.NoError(t, failure(results))
			} else {
				require.EqualError(t, failure(results), "demo of b: it does not")
			}
		})
	}
}
