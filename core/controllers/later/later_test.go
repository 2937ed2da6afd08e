package later

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestWait(t *testing.T) {
	now, cause := time.Unix(100, 0), errors.New("no answer")
	at := func(s int64) error { return &Error{Err: cause, At: time.Unix(s, 0)} }
	for name, test := range map[string]struct {
		err  error
		want time.Duration
		ok   bool
	}{
		"none":             {nil, 0, false},
		"any other":        {cause, 0, false},
		"in two seconds":   {at(102), 2 * time.Second, true},
		"overdue":          {at(90), soon, true},
		"wrapped":          {fmt.Errorf("read: %w", at(102)), 2 * time.Second, true},
		"one of several":   {errors.Join(cause, at(102)), 2 * time.Second, true},
		"of another":       {OfAnother(at(102)), 2 * time.Second, true},
		"hidden not found": {OfAnother(&Error{Err: notFound(), At: time.Unix(102, 0)}), 2 * time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			wait, ok := Wait(test.err, now)
			assert.Equal(t, test.want, wait)
			assert.Equal(t, test.ok, ok)
		})
	}
	require.ErrorIs(t, at(102), cause)
	assert.EqualError(t, at(102), "no answer")
}

func TestOfAnother(t *testing.T) {
	require.NoError(t, OfAnother(nil))
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "web", nil)
	assert.True(t, apierrors.IsForbidden(OfAnother(forbidden)))
	hidden := OfAnother(fmt.Errorf("read the owner: %w", notFound()))
	assert.False(t, apierrors.IsNotFound(hidden))
	assert.EqualError(t, hidden, `read the owner: replicasets "web" not found`)
}

func notFound() error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: "replicasets"}, "web")
}
