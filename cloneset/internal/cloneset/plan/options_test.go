package plan

import (
	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/simulate"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

func minReady(seconds int32) setOption {
	return func(s *v1beta1.CloneSet) { s.Spec.MinReadySeconds = seconds }
}

func named(pods ...string) setOption {
	return func(s *v1beta1.CloneSet) { s.Spec.ScaleStrategy.PodsToDelete = pods }
}

func excluding() setOption {
	return func(s *v1beta1.CloneSet) { s.Spec.ScaleStrategy.ExcludePreparingDelete = true }
}

func onDeleteOnly() setOption {
	return func(s *v1beta1.CloneSet) {
		s.Spec.UpdateStrategy = v1beta1.CloneSetUpdateStrategy{Type: v1beta1.OnDelete}
	}
}

// hooked lets label hook=on hold pods before their deletion and before their update in place.
func hooked() setOption {
	return func(s *v1beta1.CloneSet) {
		hook := simulate.Hook()
		s.Spec.Lifecycle = &workload.Lifecycle{PreDelete: hook, InPlaceUpdate: hook}
	}
}

var held = []gen.PodOption{gen.Lifecycle(contract.LifecyclePreparingDelete), gen.Label("hook", "on"), gen.SpecifiedDelete()}

// preNormalHook lets label hook=on admit new pods to service.
func preNormalHook() setOption {
	return func(s *v1beta1.CloneSet) {
		s.Spec.Lifecycle = &workload.Lifecycle{PreNormal: simulate.Hook()}
	}
}
