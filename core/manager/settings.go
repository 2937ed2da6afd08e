package manager

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/admission"
	"github.com/flotilla-project/flotilla/core/engine"
	"github.com/flotilla-project/flotilla/core/fastclient"
	"github.com/flotilla-project/flotilla/core/features"
	"github.com/flotilla-project/flotilla/core/inplace"
	"github.com/flotilla-project/flotilla/core/podtemplate"
)

// Settings are what the process says about one of its controllers, which writes under the user agent
// <feature>-manager/<controller>. With 0 workers the controller chooses.
func (e *Environment) Settings(controller string, workers int) engine.Settings {
	return engine.Settings{
		Workers:       workers,
		Reader:        fastclient.Options{Copy: e.Options.DisableNoDeepCopy},
		LeaderVersion: e.Fence,
		Namespace:     e.Options.Namespace,
		UserAgent:     userAgent(e.Feature, controller),
	}
}

// InPlace says what can change on running pods: what the gates allow, and of resources what the cluster can
// do.
func (e *Environment) InPlace() (inplace.Options, error) {
	can := inplace.Options{
		EnvFromMetadata: e.Options.Gates.Enabled(features.InPlaceUpdateEnvFromMetadata),
		Resize:          e.Options.Gates.Enabled(features.InPlaceWorkloadVerticalScaling),
	}
	if !can.Resize {
		return can, nil
	}
	var err error
	can.Resize, err = engine.ServesResize(e.Manager.GetConfig())
	return can, err
}

// Judge judges pod templates on admission. It asks the cluster through the client, and not more often than a
// caller of webhooks may have the cluster asked.
func (e *Environment) Judge(asker client.Client) podtemplate.Judge {
	return podtemplate.Judge{
		Cluster:          podtemplate.NewLimited(asker, e.Clock, admission.Questions()),
		ForbidPrivileged: !e.Options.AllowPrivileged,
	}
}
