package main

import (
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestUnknownArgumentsAreRefused(t *testing.T) {
	assert.EqualError(t, run(t.Context(), []string{"two", "hours"}, io.Discard), `"two hours": there are only flags`)
}
