package frame

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

// InPlace returns the options of in-place updates: the changes that the feature gates allow, and whether the cluster
// can resize pods. The default imagePullPolicy is left to the kind.
func InPlace(e *manager.Environment) (inplace.Options, error) {
	can := InPlaceOn(e.Options.FeatureGates)
	if !can.Resize {
		return can, nil
	}
	var err error
	can.Resize, can.KeepMemoryLimits, err = Resizes(e.Manager.GetConfig())
	return can, err
}

// InPlaceOn returns the options of in-place updates on a cluster of the newest Kubernetes.
func InPlaceOn(gates features.Set) inplace.Options {
	return inplace.Options{
		EnvFromMetadata: gates.Enabled(features.InPlaceUpdateEnvFromMetadata),
		Resize:          gates.Enabled(features.InPlaceWorkloadVerticalScaling),
	}
}

// TemplateValidator returns a validator of pod templates for admission. It asks the cluster through the client, no more
// often than admission.QueryLimiter allows.
func TemplateValidator(e *manager.Environment, asker client.Client) podtemplate.Validator {
	return podtemplate.Validator{
		Cluster:          podtemplate.NewLimited(asker, e.Clock, admission.QueryLimiter()),
		ForbidPrivileged: !e.Options.AllowPrivileged,
	}
}

// Resizes reports whether the cluster serves the subresource pods/resize, by which the resources of running containers
// change, and whether it keeps their memory limits from being lowered.
func Resizes(config *rest.Config) (serves, keepsMemoryLimits bool, err error) {
	d, err := optional.NewDiscovery(config, 0)
	if err != nil {
		return false, false, err
	}
	resources, err := d.ServerResourcesForGroupVersion("v1")
	if err != nil {
		return false, false, fmt.Errorf("discover the resources of v1: %w", err)
	}
	server, err := d.ServerVersion()
	if err != nil {
		return false, false, fmt.Errorf("discover the version of the server: %w", err)
	}
	serves = slices.ContainsFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Name == "pods/resize" })
	keepsMemoryLimits, err = inplace.KeepsMemoryLimits(server.GitVersion)
	return serves, keepsMemoryLimits, err
}
