package inplace

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/flotilla-project/flotilla/core/pods/inplace/diff"
)

// The words of the API of this package that package diff defines.
type (
	// Options are the feature gates and policies that decide which changes may happen in place.
	Options = diff.Options
	// Revision is one revision of a workload's pod template.
	Revision = diff.Revision
	// NotPossibleError is the reason why a change needs a new pod.
	NotPossibleError = diff.NotPossibleError
)

// KeepsMemoryLimits reports whether a server of the version lowers no memory limit of a container that does not restart
// for it: none before Kubernetes 1.34 does.
func KeepsMemoryLimits(server string) (bool, error) {
	v, err := version.ParseGeneric(server)
	if err != nil {
		return false, fmt.Errorf("read the version of the server: %w", err)
	}
	return v.LessThan(version.MajorMinor(1, 34)), nil
}
