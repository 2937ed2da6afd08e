package workload

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-project/flotilla/kustomize/cli"
)

// Group is the API group of all kinds.
const Group = "apps.kruise.io"

// Versions are the versions that commands speak, the best one first.
func Versions() []string { return []string{"v1beta1", "v1alpha1"} }

// Kind is a kind of workload.
type Kind struct {
	// Name is as manifests have it, such as CloneSet.
	Name string
	// Feature is the module that has the kind, and its name for flotilla install.
	Feature string
	// Resource is the plural in lower case; names of the API and of columns have it.
	Resource string
	// Pods is the unit that the kind counts: pods, or nodes that have one.
	Pods string

	shortNames []string
	// flat is true if v1alpha1 has the fields of updateStrategy.rollingUpdate in updateStrategy itself.
	flat   bool
	places places
}

// places are where a kind keeps its numbers, below status.
type places struct {
	wanted                           []string // from the object's root
	pods, ready, available           string
	updated, updateRevision, current string
}

// Kinds returns all kinds.
func Kinds() []Kind {
	counts := places{
		wanted:         []string{"spec", "replicas"},
		pods:           "replicas",
		ready:          "readyReplicas",
		available:      "availableReplicas",
		updated:        "updatedReplicas",
		updateRevision: "updateRevision",
		current:        "currentRevision",
	}
	return []Kind{
		{
			Name: "CloneSet", Feature: "cloneset", Resource: "clonesets", Pods: "pods",
			shortNames: []string{"clone"}, flat: true, places: counts,
		},
		{
			Name: "StatefulSet", Feature: "statefulset", Resource: "statefulsets", Pods: "pods",
			shortNames: []string{"sts", "asts"}, places: counts,
		},
		{
			Name: "DaemonSet", Feature: "daemonset", Resource: "daemonsets", Pods: "nodes",
			shortNames: []string{"daemon", "ads", "ds"}, places: places{
				wanted:         []string{"status", "desiredNumberScheduled"},
				pods:           "currentNumberScheduled",
				ready:          "numberReady",
				available:      "numberAvailable",
				updated:        "updatedNumberScheduled",
				updateRevision: "updateRevision",
			},
		},
	}
}

// Short is how commands name the kind, such as cloneset.
func (k Kind) Short() string { return strings.ToLower(k.Name) }

// In returns the resource in a version.
func (k Kind) In(version string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: Group, Version: version, Resource: k.Resource}
}

// rollingUpdate is the path of the rolling update's fields in a version.
func (k Kind) rollingUpdate(version string) []string {
	if k.flat && version == "v1alpha1" {
		return []string{"spec", "updateStrategy"}
	}
	return []string{"spec", "updateStrategy", "rollingUpdate"}
}

// KindNamed finds the kind by its name, its plural or a short name, with or without version and group. A name that it does
// not find is misuse.
func KindNamed(text string) (Kind, error) {
	name, rest, _ := strings.Cut(strings.ToLower(text), ".")
	for _, kind := range Kinds() {
		if name != kind.Short() && name != kind.Resource && !slices.Contains(kind.shortNames, name) {
			continue
		}
		if strings.HasPrefix(rest, "apps") && rest != Group || strings.HasSuffix(rest, ".apps") {
			return Kind{}, cli.MisuseErrorf("%s is a built-in kind: use kubectl. flotilla handles the kinds of %s: %s", text, Group, handled)
		}
		return kind, nil
	}
	return Kind{}, cli.MisuseErrorf("unknown kind %q: flotilla handles the kinds of %s: %s", text, Group, handled)
}

// Named is one workload as the command line names it.
type Named struct {
	Kind Kind
	Name string
}

// String is how commands name the workload.
func (n Named) String() string { return n.Kind.Short() + "/" + n.Name }

// handled are the kinds as users type them.
const handled = "cloneset, statefulset, daemonset"

const howToName = "name one workload as KIND/NAME, such as cloneset/web"

// Arguments accepts the arguments of a command about one workload, which Parse reads.
func Arguments(_ *cobra.Command, args []string) error {
	if len(args) < 1 || len(args) > 2 {
		return errors.New(howToName)
	}
	return nil
}

// Parse reads "KIND/NAME" or "KIND NAME". Anything else is misuse.
func Parse(args []string) (Named, error) {
	if len(args) == 1 {
		args = strings.Split(args[0], "/")
	}
	if len(args) != 2 || args[0] == "" || args[1] == "" {
		return Named{}, cli.MisuseErrorf(howToName)
	}
	if strings.Contains(args[1], "/") {
		return Named{}, cli.MisuseErrorf("invalid name %q: %s", args[1], howToName)
	}
	kind, err := KindNamed(args[0])
	return Named{Kind: kind, Name: args[1]}, err
}
