package engine

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/optional"
	"github.com/flotilla-project/flotilla/core/controllers/podtemplate"
	"github.com/flotilla-project/flotilla/core/operator/admission"
	"github.com/flotilla-project/flotilla/core/operator/features"
	"github.com/flotilla-project/flotilla/core/operator/manager"
	"github.com/flotilla-project/flotilla/core/pods/inplace"
)

// InPlace says what can change on running pods: what the gates allow, and of resources what the cluster can
// do. How a container without imagePullPolicy is read is for the kind to say.
func InPlace(e *manager.Environment) (inplace.Options, error) {
	can := inplace.Options{
		EnvFromMetadata: e.Options.Gates.Enabled(features.InPlaceUpdateEnvFromMetadata),
		Resize:          e.Options.Gates.Enabled(features.InPlaceWorkloadVerticalScaling),
	}
	if !can.Resize {
		return can, nil
	}
	var err error
	can.Resize, err = ServesResize(e.Manager.GetConfig())
	return can, err
}

// Judge judges pod templates on admission. It asks the cluster through the client, and not more often than a
// caller of webhooks may have the cluster asked.
func Judge(e *manager.Environment, asker client.Client) podtemplate.Judge {
	return podtemplate.Judge{
		Cluster:          podtemplate.NewLimited(asker, e.Clock, admission.Questions()),
		ForbidPrivileged: !e.Options.AllowPrivileged,
	}
}

// ServesResize reports whether containers of running pods can get other resources: whether the cluster serves the
// subresource pods/resize.
func ServesResize(config *rest.Config) (bool, error) {
	d, err := optional.NewDiscovery(config, 0)
	if err != nil {
		return false, err
	}
	resources, err := d.ServerResourcesForGroupVersion("v1")
	if err != nil {
		return false, fmt.Errorf("discover the resources of v1: %w", err)
	}
	return slices.ContainsFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Name == "pods/resize" }), nil
}
