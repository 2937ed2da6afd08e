package conversion

import (
	"testing"

	"github.com/flotilla-project/flotilla/core/testing/fuzz"
)

func FuzzConvert(f *testing.F) {
	fuzz.Conversion{Convert: Convert, CRD: fuzz.ReadCRD(f, "../../config/crd/workloadspreads.yaml")}.Run(f, fuzz.Read(f, "../../config/samples/*.yaml")...)
}
