package health

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"time"

	"github.com/flotilla-project/flotilla/kustomize/apply"
)

// certificates finds CA bundles that are no longer valid.
func certificates(report *Report, now time.Time) []Finding {
	var findings []Finding
	for _, wanted := range report.wanted {
		live, there := report.live[apply.Describe(wanted)]
		if !there {
			continue
		}
		for _, bundle := range apply.Bundles(live) {
			if bundle == "" {
				continue // the missing bundle is a fault already
			}
			if trouble := judgeBundle(bundle, now); trouble != "" {
				findings = append(findings, Finding{
					About:   report.Feature,
					Trouble: apply.Describe(live) + ": " + trouble,
					Help:    "The operator writes the CA bundle: check its log. With component certmanager, check the log of cert-manager.",
				})
				break
			}
		}
	}
	return findings
}

// judgeBundle returns the fault of a bundle. One certificate that is valid is enough: during a rotation there are older
// ones.
func judgeBundle(encoded string, now time.Time) string {
	rest, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return "its CA bundle cannot be read"
	}
	var latest time.Time
	for {
		var block *pem.Block
		block, rest = pem.Decode(rest)
		if block == nil {
			break
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return "its CA bundle cannot be read"
		}
		if certificate.NotAfter.After(latest) {
			latest = certificate.NotAfter
		}
	}
	switch {
	case latest.IsZero():
		return "its CA bundle has no certificate"
	case latest.Before(now):
		return fmt.Sprintf("its CA expired at %s", latest.UTC().Format(time.RFC3339))
	}
	return ""
}
