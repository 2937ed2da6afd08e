package admission_test

import (
	"testing"

	"github.com/flotilla-project/flotilla/core/testing/fuzz"

	"github.com/flotilla-project/flotilla/daemon/internal/launch/admission"
)

func FuzzAdmission(f *testing.F) {
	fuzz.Admission{Mutating: admission.Webhook{Suffix: suffix}.Launch().Handler}.Run(f, fuzz.Pods(f)...)
}

func FuzzReadinessGate(f *testing.F) {
	fuzz.Admission{Mutating: admission.Webhook{Suffix: suffix}.ReadinessGate().Handler}.Run(f, fuzz.Pods(f)...)
}
