package main

import (
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A new feature or demo is not forgotten.
func TestAllMeansAll(t *testing.T) {
	configs, err := filepath.Glob(filepath.Join("..", "..", "..", "*", "config", "default"))
	require.NoError(t, err)
	var modules []string
	for _, config := range configs {
		modules = append(modules, filepath.Base(filepath.Dir(filepath.Dir(config))))
	}
	assert.ElementsMatch(t, modules, features())
	demos := slices.Collect(maps.Keys(shows()))
	assert.ElementsMatch(t, demos, append(turns(), everything))
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
