package certs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReadSettings(t *testing.T) {
	environment := func(values map[string]string) func(string) string {
		return func(name string) string { return values[name] }
	}

	settings, notes, err := ReadSettings("cloneset", "flotilla-system", environment(nil))
	require.NoError(t, err)
	assert.Empty(t, notes)
	assert.Equal(t, Settings{
		Namespace: "flotilla-system", SecretName: "cloneset-webhook-certs", ServiceName: "cloneset-webhook", Port: 9876,
	}, settings)
	assert.Equal(t, []string{"cloneset-webhook.flotilla-system.svc", "localhost"}, settings.Names())

	settings, notes, err = ReadSettings("cloneset", "flotilla-system", environment(map[string]string{
		"POD_NAMESPACE": "kruise-system", "SECRET_NAME": "s", "SERVICE_NAME": "w", "WEBHOOK_PORT": "443", "WEBHOOK_HOST": "10.0.0.1:9443",
		"CERTS_RENEW_BEFORE": "3m", "WEBHOOK_CERT_DIR": "certs",
	}))
	require.NoError(t, err)
	assert.Equal(t, Settings{
		Namespace: "kruise-system", SecretName: "s", ServiceName: "w", Host: "10.0.0.1:9443", Port: 443, RenewBefore: 90 * 24 * time.Hour,
	}, settings)
	assert.Equal(t, []string{"10.0.0.1", "localhost"}, settings.Names())
	require.Len(t, notes, 1)
	assert.Contains(t, notes[0], "WEBHOOK_CERT_DIR")

	_, _, err = ReadSettings("cloneset", "flotilla-system", environment(map[string]string{"WEBHOOK_PORT": "http"}))
	require.ErrorContains(t, err, "WEBHOOK_PORT")

	settings, notes, err = ReadSettings("cloneset", "flotilla-system", environment(map[string]string{"CERTS_RENEW_BEFORE": "soon"}))
	require.NoError(t, err)
	assert.Zero(t, settings.RenewBefore)
	require.Len(t, notes, 1)
	assert.Contains(t, notes[0], "CERTS_RENEW_BEFORE")
}

func TestParseAge(t *testing.T) {
	for value, want := range map[string]time.Duration{"180d": 180 * day, "6m": 180 * day, "1y": 365 * day, "99999999y": caLife} {
		age, ok := parseAge(value)
		assert.True(t, ok, value)
		assert.Equal(t, want, age, value)
	}
	for _, value := range []string{"", "d", "1", "1h", "-1d", "0d", "1.5y", "y1"} {
		_, ok := parseAge(value)
		assert.False(t, ok, value)
	}
}
