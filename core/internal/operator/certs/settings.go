package certs

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// Settings are the names under which an operator keeps its certificates and serves its webhooks.
type Settings struct {
	// Namespace holds the Secret and the Service.
	Namespace string
	// SecretName is the Secret with the certificates, ServiceName the Service that the API server calls.
	SecretName, ServiceName string
	// Host replaces the Service if the API server reaches the operator by URL. You have to set the URLs in configurations
	// and CRDs when you install the operator.
	Host string
	// Port is the port of the webhook server.
	Port int
	// RenewBefore is how long before its end the serving certificate is replaced, at most half of its life.
	// Zero means a third of its life.
	RenewBefore time.Duration
}

// defaultPort is the default port of webhook servers; the Service forwards to it.
const defaultPort = 9876

// ReadSettings reads the settings of a feature from the environment, and returns notes for the log about variables that
// are known but have no effect. A bad port is an error; a bad CERTS_RENEW_BEFORE means the default.
func ReadSettings(feature, defaultNamespace string, getenv func(string) string) (Settings, []string, error) {
	or := func(name, fallback string) string {
		if value := getenv(name); value != "" {
			return value
		}
		return fallback
	}
	settings := Settings{
		Namespace:   or("POD_NAMESPACE", defaultNamespace),
		SecretName:  or("SECRET_NAME", feature+"-webhook-certs"),
		ServiceName: or("SERVICE_NAME", feature+"-webhook"),
		Host:        getenv("WEBHOOK_HOST"),
	}
	port, err := strconv.Atoi(or("WEBHOOK_PORT", strconv.Itoa(defaultPort)))
	if err != nil || port < 1 || port > 65535 {
		return settings, nil, fmt.Errorf("read WEBHOOK_PORT: %q is not a port", getenv("WEBHOOK_PORT"))
	}
	settings.Port = port

	var notes []string
	for _, name := range []string{"WEBHOOK_CERT_WRITER", "WEBHOOK_CERT_DIR"} {
		if getenv(name) != "" {
			notes = append(notes, name+" is ignored: certificates are kept in memory only")
		}
	}
	if value := getenv("CERTS_RENEW_BEFORE"); value != "" {
		var valid bool
		if settings.RenewBefore, valid = parseAge(value); !valid {
			notes = append(notes, fmt.Sprintf("CERTS_RENEW_BEFORE is ignored: %q is not a number of days, months or years such as 90d, 3m, 1y", value))
		}
	}
	return settings, notes, nil
}

// parseAge parses a whole number of days (d), months of 30 days (m) or years of 365 days (y).
func parseAge(value string) (time.Duration, bool) {
	for unit, length := range map[string]time.Duration{
		"d": day,
		"m": 30 * day,
		"y": 365 * day,
	} {
		if digits, ok := strings.CutSuffix(value, unit); ok {
			count, err := strconv.Atoi(digits)
			if err != nil || count < 1 {
				return 0, false
			}
			// No certificate lives longer than a CA, and the bound prevents an overflow.
			return time.Duration(min(count, int(caLife/length))) * length, true
		}
	}
	return 0, false
}

// Names returns the names that the serving certificate is made for: the name of the Service or the host first, then
// localhost for the operator's own health check.
func (s Settings) Names() []string {
	name := s.ServiceName + "." + s.Namespace + ".svc"
	if s.Host != "" {
		name = s.Host
		if host, _, err := net.SplitHostPort(s.Host); err == nil {
			name = host
		}
	}
	if name == "localhost" {
		return []string{name}
	}
	return []string{name, "localhost"}
}
