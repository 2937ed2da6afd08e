package forecast

import (
	"github.com/flotilla-project/flotilla/core/simulation/rehearse"

	cloneset "github.com/flotilla-project/flotilla/cloneset/whatif"
	daemonset "github.com/flotilla-project/flotilla/daemonset/whatif"
	statefulset "github.com/flotilla-project/flotilla/statefulset/whatif"
)

// Version is the one in which sets are stored, and played.
const Version = "v1beta1"

// kinds are the kinds that can be played with feature gates, by the feature that has them.
func kinds() map[string]func(gates string) (rehearse.Kind, error) {
	return map[string]func(string) (rehearse.Kind, error){
		"cloneset":    cloneset.Kind,
		"statefulset": statefulset.Kind,
		"daemonset":   daemonset.Kind,
	}
}
