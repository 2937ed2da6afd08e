package agent

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-project/flotilla/core/controllers/optional"
	"github.com/flotilla-project/flotilla/core/operator/process"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

// definitionPeriod is the time between two checks for missing definitions.
const definitionPeriod = 2 * time.Second

// waitForDefinitions returns when the server serves our kinds. It waits without a limit; the readiness probe reports
// the missing kinds. The error is the error of ctx.
func (a *agent) waitForDefinitions(ctx context.Context) error {
	var startup process.Startup
	startup.NotReady("waiting for the API server")
	a.probes.add("definitions", startup.Check)
	err := process.Kinds{
		Missing: a.missingDefinitions, OnMissing: startup.NotReady, Interval: definitionPeriod, Clock: a.clock, Log: a.Log,
	}.Wait(ctx)
	if err == nil {
		startup.Done()
	}
	return err
}

// definitions returns our kinds, in the one version that the agent reads.
func definitions() []optional.Kind {
	kind := func(name, resource string) optional.Kind {
		return optional.Kind{
			GroupKind: schema.GroupKind{Group: v1beta1.GroupVersion.Group, Kind: name},
			Resource:  resource,
			Versions:  []string{v1beta1.GroupVersion.Version},
		}
	}
	return []optional.Kind{
		kind(v1beta1.NodeImageKind, "nodeimages"),
		kind(v1beta1.ContainerRecreateRequestKind, "containerrecreaterequests"),
	}
}

// missingDefinitions returns the kinds that are not served. It asks discovery, which everybody may read.
func (a *agent) missingDefinitions(context.Context) (missing []string) {
	discovery, err := optional.NewDiscovery(a.config, 0)
	if err != nil {
		return []string{err.Error()}
	}
	for _, kind := range definitions() {
		version, err := kind.Served(discovery)
		if err != nil {
			return []string{fmt.Sprintf("failed to discover the kinds of %s: %v", v1beta1.GroupVersion, err)}
		}
		if version == "" {
			missing = append(missing, "CRD "+kind.Resource+"."+kind.Group+" (not installed)")
		}
	}
	return missing
}
