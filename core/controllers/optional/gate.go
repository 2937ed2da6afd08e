package optional

import (
	"context"
	"sync/atomic"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Gate is the condition that a controller of an optional kind waits for: the cluster serves the kind, and the process may
// cache its objects.
type Gate struct {
	Kind
	Discovery Discovery
	// Client asks the server for permissions.
	Client client.Writer
	// Namespace is the namespace of the objects, empty for all.
	Namespace string

	forbidden atomic.Bool
	version   atomic.Value
}

// Open reports whether the kind is served and the process may cache its objects. It may unless the server reports
// otherwise.
func (g *Gate) Open(ctx context.Context) (bool, error) {
	version, err := g.Served(g.Discovery)
	g.version.Store(version)
	if err != nil || version == "" {
		g.forbidden.Store(false)
		return false, err
	}
	lacking, err := Rights{Namespace: g.Namespace, Group: g.Group, Resource: g.Resource, Verbs: []string{"list", "watch"}}.Lacking(ctx, g.Client)
	if err != nil {
		log.FromContext(ctx).Error(err, "Failed to check whether objects may be cached", "resource", g.Resource)
	}
	g.forbidden.Store(len(lacking) > 0)
	return len(lacking) == 0, nil
}

// Version returns the version in which the last Open found the kind, empty if it is not served.
func (g *Gate) Version() string {
	version, _ := g.version.Load().(string)
	return version
}

// Forbidden reports whether the last Open found that the kind is served and that the process may not cache its objects.
func (g *Gate) Forbidden() bool { return g.forbidden.Load() }
