package testenv

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Warnings are the warnings of the server to a client.
type Warnings struct {
	mu    sync.Mutex
	texts []string
}

// HandleWarningHeaderWithContext records a warning.
func (w *Warnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, text)
}

// Heard returns the warnings since the last call.
func (w *Warnings) Heard() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	heard := w.texts
	w.texts = nil
	return heard
}

// Warned returns Client, and the warnings that it receives.
func (e *Environment) Warned(t testing.TB) (client.Client, *Warnings) {
	t.Helper()
	e.Need(t)
	heard := &Warnings{}
	config := rest.CopyConfig(e.Config)
	config.WarningHandlerWithContext = heard
	c, err := client.New(config, client.Options{Scheme: e.Scheme})
	require.NoError(t, err)
	return made{Client: c, env: e, t: t}, heard
}
