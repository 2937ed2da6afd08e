package openkruise

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/catalog"
)

// recordPrefix is the beginning of the names of ConfigMaps that record handovers, one for each feature.
const recordPrefix = "flotilla-takeover-"

// Keys of the data of a record.
const (
	stepKey      = "step"
	directionKey = "direction"
	namespaceKey = "from-namespace"
	accountKey   = "from-account"
)

// Direction is where a feature goes.
type Direction string

const (
	// Over is from OpenKruise to Flotilla.
	Over Direction = "over"
	// Back is from Flotilla to OpenKruise.
	Back Direction = "back"
	// Final is to the end of the takeover, after which nothing can be given back.
	Final Direction = "final"
)

// Handover is how far a feature has changed hands. It stands in a ConfigMap from the first step of a takeover until the
// feature has been given back.
type Handover struct {
	Feature string
	// Step is the step that was begun last, empty when all steps were done.
	Step string
	// Direction is where the steps lead.
	Direction Direction
	// From is the manager that the feature is taken from.
	From Manager
}

// RecordName is the name of a feature's record, of its policy and of the binding of that.
func RecordName(feature string) string { return recordPrefix + feature }

// ProtectionName is the name of the policy by which the CRDs of a feature cannot be deleted, and of its binding.
func ProtectionName(feature string) string { return RecordName(feature) + "-crds" }

// Leftovers are the objects that a handover has added to a cluster: its policies, which keep others from the feature, and
// its record.
func Leftovers(feature string) []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for _, name := range []string{RecordName(feature), ProtectionName(feature)} {
		all = append(all, configuration("ValidatingAdmissionPolicyBinding", name), configuration("ValidatingAdmissionPolicy", name))
	}
	return append(all, RecordOf(feature))
}

// RecordOf returns the ConfigMap of a feature without its content.
func RecordOf(feature string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("v1")
	object.SetKind("ConfigMap")
	object.SetNamespace(catalog.Namespace)
	object.SetName(RecordName(feature))
	object.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "flotilla", "app.kubernetes.io/part-of": "flotilla"})
	return object
}

// Write puts the handover into its ConfigMap.
func (h Handover) Write(object *unstructured.Unstructured) {
	data := map[string]any{}
	for key, value := range map[string]string{
		stepKey:      h.Step,
		directionKey: string(h.Direction),
		namespaceKey: h.From.Namespace,
		accountKey:   h.From.Account,
	} {
		if value != "" {
			data[key] = value
		}
	}
	object.Object["data"] = data
}

// Read reads the handover out of its ConfigMap. One that an earlier version wrote has ended, and names no manager.
func Read(object *unstructured.Unstructured) Handover {
	data, _, _ := unstructured.NestedStringMap(object.Object, "data")
	handover := Handover{
		Feature:   strings.TrimPrefix(object.GetName(), recordPrefix),
		Step:      data[stepKey],
		Direction: Direction(data[directionKey]),
		From:      Manager{Namespace: data[namespaceKey], Account: data[accountKey]},
	}
	if handover.Direction == "" {
		handover.Direction = Over
	}
	if handover.From.Namespace == "" {
		handover.From.Namespace = Default().Namespace
	}
	if handover.From.Account == "" {
		handover.From.Account = Default().Account
	}
	return handover
}

// Handovers returns the handovers of a cluster by feature.
func Handovers(ctx context.Context, cluster *apply.Cluster) (map[string]Handover, error) {
	list, err := cluster.List(ctx, schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, catalog.Namespace,
		"app.kubernetes.io/managed-by=flotilla")
	if err != nil {
		return nil, fmt.Errorf("look for takeovers: %w", err)
	}
	found := map[string]Handover{}
	for i := range list {
		if strings.HasPrefix(list[i].GetName(), recordPrefix) {
			handover := Read(&list[i])
			found[handover.Feature] = handover
		}
	}
	return found, nil
}

// Ended reports whether all steps were done.
func (h Handover) Ended() bool { return h.Step == "" }

// Trouble reports that a handover has begun and not ended; empty when it has.
func (h Handover) Trouble() string {
	switch {
	case h.Ended():
		return ""
	case h.Direction == Back:
		return fmt.Sprintf("the return to OpenKruise was interrupted; last step: %s", h.Step)
	case h.Direction == Final:
		return fmt.Sprintf("the end of its takeover from OpenKruise was interrupted; last step: %s", h.Step)
	}
	return fmt.Sprintf("its takeover from OpenKruise was interrupted; last step: %s", h.Step)
}

// Help names the command that continues and the one that turns round.
func (h Handover) Help() string {
	if h.Direction == Back {
		return fmt.Sprintf("To continue: %s. To take it over again: %s", h.Undo(), h.Takeover())
	}
	if h.Direction == Final {
		return "To continue: " + h.Finish()
	}
	return fmt.Sprintf("To continue: %s. To go back: %s", h.Takeover(), h.Undo())
}

// Takeover is the command that takes the feature over, or continues with it.
func (h Handover) Takeover() string { return "flotilla takeover " + h.Feature + h.From.Flags() }

// Undo is the command that gives the feature back.
func (h Handover) Undo() string { return "flotilla takeover " + h.Feature + " --undo" }

// Finish is the command that ends the takeover of the feature.
func (h Handover) Finish() string { return "flotilla takeover --finish " + h.Feature }

// State reports how to continue after a handover that has ended; empty for one that has not.
func (h Handover) State() string {
	switch {
	case !h.Ended() || h.Direction == Back:
		return ""
	case h.Direction == Final:
		return "takeover from OpenKruise is final; to remove the rest of OpenKruise: flotilla takeover --finish"
	}
	return fmt.Sprintf("taken over from OpenKruise; to go back: %s; to finish: %s", h.Undo(), h.Finish())
}
