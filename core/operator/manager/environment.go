package manager

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/internal/controllers/freshness"
)

// Environment is the input for the creation of an operator's webhooks and controllers.
type Environment struct {
	Feature string
	Options Options
	// Manager is controller-runtime's manager. It is nil while Operator.Cache runs. Its webhook server is not
	// used: endpoints are returned by Operator.Webhooks.
	Manager ctrlmanager.Manager
	Log     logr.Logger
	Clock   clock.WithTicker

	identity string // in the Lease

	fence  *freshness.Fence // of all controllers
	leader struct {
		sync.Mutex
		version string
	}
}

// Client returns a client with the user agent <feature>-manager/<controller>. Reads come from the shared cache,
// and the connections are shared too.
func (e *Environment) Client(controller string) (client.Client, error) {
	return fastclient.NewClient(e.Manager, userAgent(e.Feature, controller))
}

// APIReader returns a reader with the user agent <feature>-manager/<controller> that asks the API server
// itself.
func (e *Environment) APIReader(controller string) (client.Reader, error) {
	return client.New(withUserAgent(e.Manager.GetConfig(), e.Feature, controller), client.Options{
		Scheme: e.Manager.GetScheme(),
		Mapper: e.Manager.GetRESTMapper(),
	})
}

func userAgent(feature, part string) string { return feature + "-manager/" + part }

// LeaderVersion returns the resourceVersion that a store must have reached before anything is planned from it: nothing
// that an earlier leader wrote is newer. Call it from a controller only, that is after the election; it reads the
// server once and remembers the answer.
//
// With leader election it is the version of the Lease, read live once this replica has acquired it: all writes of the
// earlier leader had ended before. Without leader election it is the version of a live list.
func (e *Environment) LeaderVersion(ctx context.Context) (string, error) {
	e.leader.Lock()
	defer e.leader.Unlock()
	if e.leader.version != "" {
		return e.leader.version, nil
	}
	version, err := e.readLeaderVersion(ctx)
	if err != nil {
		return "", fmt.Errorf("read the version of the leader: %w", err)
	}
	e.leader.version = version
	return version, nil
}

func (e *Environment) readLeaderVersion(ctx context.Context) (string, error) {
	election := e.Options.LeaderElection
	reader := e.Manager.GetAPIReader()
	if !election.Enabled {
		var leases coordinationv1.LeaseList
		err := reader.List(ctx, &leases, client.InNamespace(election.Namespace), client.MatchingFields{"metadata.name": election.ID})
		return leases.ResourceVersion, err
	}

	var lease coordinationv1.Lease
	if err := reader.Get(ctx, client.ObjectKey{Namespace: election.Namespace, Name: election.ID}, &lease); err != nil {
		return "", err
	}
	if holder := lease.Spec.HolderIdentity; holder == nil || *holder != e.identity {
		return "", fmt.Errorf("lease %s/%s is not held by this replica", lease.Namespace, lease.Name)
	}
	return lease.ResourceVersion, nil
}
