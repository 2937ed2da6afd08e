package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

// definitionPause lies between two looks for definitions that are missing.
const definitionPause = 2 * time.Second

// waitForDefinitions returns when the server serves our kinds. It waits for ever and says in the probe what it
// waits for; the error is that of ctx. It asks discovery, which everybody may read.
func (a *agent) waitForDefinitions(ctx context.Context) error {
	var missing atomic.Pointer[string]
	a.probes.add("definitions", func() error {
		if reason := missing.Load(); reason != nil {
			return errors.New(*reason)
		}
		return nil
	})
	told := "waiting for the API server"
	missing.Store(&told)
	for {
		reason := a.missingDefinitions()
		if reason == "" {
			missing.Store(nil)
			return nil
		}
		missing.Store(&reason)
		if reason != told {
			a.Log.Info("The agent waits for definitions", "reason", reason)
			told = reason
		}
		timer := a.clock.NewTimer(definitionPause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C():
		}
	}
}

// missingDefinitions says what is not served; empty when all is.
func (a *agent) missingDefinitions() string {
	client, err := discovery.NewDiscoveryClientForConfig(a.config)
	if err != nil {
		return err.Error()
	}
	served, err := client.ServerResourcesForGroupVersion(v1beta1.GroupVersion.String())
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Sprintf("kinds of %s cannot be discovered: %v", v1beta1.GroupVersion, err)
	}
	var missing []string
	for _, name := range []string{"nodeimages", "containerrecreaterequests"} {
		found := served != nil && slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Name == name })
		if !found {
			missing = append(missing, "CRD "+name+"."+v1beta1.GroupVersion.Group+" (not installed)")
		}
	}
	return strings.Join(missing, ", ")
}
