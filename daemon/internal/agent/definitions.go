package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	"github.com/flotilla-project/flotilla/core/operator/process"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

// definitionPeriod is the time between two checks for missing definitions.
const definitionPeriod = 2 * time.Second

// waitForDefinitions returns when the server serves our kinds. It waits without a limit; the readiness probe reports
// what it waits for. The error is that of ctx.
func (a *agent) waitForDefinitions(ctx context.Context) error {
	var missing atomic.Pointer[string]
	waits := func(what string) { missing.Store(&what) }
	waits("waiting for the API server")
	a.probes.add("definitions", func() error {
		if reason := missing.Load(); reason != nil {
			return errors.New(*reason)
		}
		return nil
	})
	err := process.Kinds{
		Missing: a.missingDefinitions, OnMissing: waits, Interval: definitionPeriod, Clock: a.clock, Log: a.Log,
	}.Wait(ctx)
	if err == nil {
		missing.Store(nil)
	}
	return err
}

// missingDefinitions returns what is not served. It asks discovery, which everybody may read.
func (a *agent) missingDefinitions(context.Context) []string {
	client, err := discovery.NewDiscoveryClientForConfig(a.config)
	if err != nil {
		return []string{err.Error()}
	}
	served, err := client.ServerResourcesForGroupVersion(v1beta1.GroupVersion.String())
	if err != nil && !apierrors.IsNotFound(err) {
		return []string{fmt.Sprintf("kinds of %s cannot be discovered: %v", v1beta1.GroupVersion, err)}
	}
	var missing []string
	for _, name := range []string{"nodeimages", "containerrecreaterequests"} {
		found := served != nil && slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Name == name })
		if !found {
			missing = append(missing, "CRD "+name+"."+v1beta1.GroupVersion.Group+" (not installed)")
		}
	}
	return missing
}
