package workloads

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/contract"

	"github.com/flotilla-project/flotilla/spread/internal/subsets"
)

const (
	// ConfigMapName is the ConfigMap, in the operator's own namespace, that allows further kinds.
	ConfigMapName = "kruise-configuration"
	// ConfigMapKey is its key.
	ConfigMapKey = "WorkloadSpread_Watch_Custom_Workload_WhiteList"
	// configLife is how long the ConfigMap is remembered.
	configLife = 10 * time.Second
)

// Kinds of workloads that are known without a ConfigMap.
var (
	Deployment  = schema.GroupKind{Group: "apps", Kind: "Deployment"}                 //nolint:gochecknoglobals // a constant
	ReplicaSet  = schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}                 //nolint:gochecknoglobals // a constant
	StatefulSet = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}                //nolint:gochecknoglobals // a constant
	Job         = schema.GroupKind{Group: "batch", Kind: "Job"}                       //nolint:gochecknoglobals // a constant
	CloneSet    = schema.GroupKind{Group: contract.AppsGroup, Kind: "CloneSet"}       //nolint:gochecknoglobals // a constant
	AdvancedSet = schema.GroupKind{Group: contract.AppsGroup, Kind: StatefulSet.Kind} //nolint:gochecknoglobals // a constant
)

// BuiltIn returns the kinds that are known without a ConfigMap.
func BuiltIn() []schema.GroupKind {
	return []schema.GroupKind{Deployment, ReplicaSet, StatefulSet, Job, CloneSet, AdvancedSet}
}

// MayControl reports whether pods with a controller of a kind may belong to a target. The kinds below a kind that the
// ConfigMap allows are not known.
func MayControl(target, controller schema.GroupKind) bool {
	return target == controller || target == Deployment && controller == ReplicaSet || !slices.Contains(BuiltIn(), target)
}

// HasOrdinals reports whether pods of the kind are placed by their number.
func HasOrdinals(kind schema.GroupKind) bool { return kind == StatefulSet || kind == AdvancedSet }

// HasCosts reports whether the kind scales in by deletion costs.
func HasCosts(kind schema.GroupKind) bool {
	return kind == Deployment || kind == ReplicaSet || kind == CloneSet
}

// ParseVersioned reads the names of kinds of which each revision has places of its own. A Deployment's pods belong to
// ReplicaSets: one name means both.
func ParseVersioned(names []string) (subsets.Versioned, error) {
	known := map[string]subsets.Versioned{
		"deployment": {Deployment, ReplicaSet},
		"replicaset": {Deployment, ReplicaSet},
		"cloneset":   {CloneSet},
		"":           nil,
	}
	var all subsets.Versioned
	for _, name := range names {
		kinds, ok := known[strings.ToLower(strings.TrimSpace(name))]
		if !ok {
			return nil, fmt.Errorf("unknown kind %q: use deployment, replicaset or cloneset", name)
		}
		all = append(all, kinds...)
	}
	return all, nil
}

// Allowed is a kind that the ConfigMap allows.
type Allowed struct {
	Group, Version, Kind string
	// ReplicasPath is the path of the wanted replicas; empty for the scale subresource.
	ReplicasPath string
	// SubResources are kinds between the workload and its pods.
	SubResources []struct{ Group, Version, Kind string }
}

// GroupKind returns the kind.
func (a Allowed) GroupKind() schema.GroupKind { return schema.GroupKind{Group: a.Group, Kind: a.Kind} }

// between reports whether the kind may stand between the workload and its pods.
func (a Allowed) between(kind schema.GroupKind) bool {
	return slices.ContainsFunc(a.SubResources, func(s struct{ Group, Version, Kind string }) bool {
		return s.Group == kind.Group && s.Kind == kind.Kind
	})
}

// ParseAllowed reads the value of the ConfigMap. The names of its members may have any case of letters.
func ParseAllowed(text string) ([]Allowed, error) {
	var list struct{ Workloads []Allowed }
	if text == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("read key %s of ConfigMap %s: %w", ConfigMapKey, ConfigMapName, err)
	}
	return list.Workloads, nil
}

// Config knows which kinds the ConfigMap allows. It is safe for concurrent use.
type Config struct {
	// Live reads the ConfigMap in Namespace.
	Live      client.Reader
	Namespace string
	Clock     clock.PassiveClock

	mu    sync.Mutex
	known []Allowed
	err   error
	until time.Time
}

// Allowed returns the kinds. The last answer counts for ten seconds; while the ConfigMap cannot be read or understood, the
// kinds that were known before count, and the error is the cause.
func (c *Config) Allowed(ctx context.Context) ([]Allowed, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Clock.Now().Before(c.until) {
		return c.known, c.err
	}
	var m corev1.ConfigMap
	err := c.Live.Get(ctx, types.NamespacedName{Namespace: c.Namespace, Name: ConfigMapName}, &m)
	if err != nil && ctx.Err() != nil {
		return c.known, err // it is the caller who has gone
	}
	c.until = c.Clock.Now().Add(configLife)
	c.err = client.IgnoreNotFound(err)
	if err == nil || apierrors.IsNotFound(err) {
		var found []Allowed
		if found, c.err = ParseAllowed(m.Data[ConfigMapKey]); c.err == nil {
			c.known = found
		}
	}
	return c.known, c.err
}

// Forget has the ConfigMap read again with the next question.
func (c *Config) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = time.Time{}
}

// find returns the ConfigMap's entry for a kind of workloads. It sends no request for kinds that are known without the
// ConfigMap.
func (c *Config) find(ctx context.Context, kind schema.GroupKind) (Allowed, bool, error) {
	if slices.Contains(BuiltIn(), kind) {
		return Allowed{}, false, nil
	}
	all, err := c.Allowed(ctx)
	i := slices.IndexFunc(all, func(a Allowed) bool { return a.GroupKind() == kind })
	if i < 0 {
		return Allowed{}, false, err
	}
	return all[i], true, nil
}

// Knows reports whether workloads of the kind can be spread.
func (c *Config) Knows(ctx context.Context, kind schema.GroupKind) (bool, error) {
	if slices.Contains(BuiltIn(), kind) {
		return true, nil
	}
	_, ok, err := c.find(ctx, kind)
	return ok, err
}

// Follows reports whether a kind is a workload, or may stand between one and its pods.
func (c *Config) Follows(ctx context.Context, kind schema.GroupKind) bool {
	if slices.Contains(BuiltIn(), kind) {
		return true
	}
	all, _ := c.Allowed(ctx)
	return slices.ContainsFunc(all, func(a Allowed) bool { return a.GroupKind() == kind || a.between(kind) })
}
