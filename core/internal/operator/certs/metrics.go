package certs

import (
	"crypto/x509"

	"github.com/prometheus/client_golang/prometheus"
)

// newWrites returns the counter of the controller's writes: if it grows all the time, another client overwrites them.
func newWrites() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "flotilla_webhook_certificate_writes_total",
		Help: "Writes of the certificate controller, by kind of object. If the number keeps growing, another client overwrites these objects.",
	}, []string{"kind"})
}

// Collectors returns the metrics of the controller.
func (c *Controller) Collectors() []prometheus.Collector {
	expiry := func(name string, end func(*served) *x509.Certificate) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name:        "flotilla_webhook_certificate_expiry_timestamp_seconds",
			Help:        "Expiry of the certificate in use, in seconds since 1970; 0 without a certificate.",
			ConstLabels: prometheus.Labels{"certificate": name},
		}, func() float64 {
			current := c.source.served.Load()
			if current == nil {
				return 0
			}
			certificate := end(current)
			if certificate == nil {
				return 0
			}
			return float64(certificate.NotAfter.Unix())
		})
	}
	return []prometheus.Collector{
		c.writes,
		expiry("serving", func(s *served) *x509.Certificate { return s.certificate.Leaf }),
		expiry("ca", func(s *served) *x509.Certificate { return s.ca }),
	}
}
