package openkruise

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-project/flotilla/kustomize/apply"
)

// agent is the ServiceAccount of the node agent.
const agent = "kruise-daemon"

// Manager is OpenKruise's manager: a ServiceAccount.
type Manager struct {
	Namespace, Account string
}

// Default is the manager where OpenKruise's manifests install it.
func Default() Manager { return Manager{Namespace: "kruise-system", Account: "kruise-manager"} }

// User is the user that the manager is.
func (m Manager) User() string { return "system:serviceaccount:" + m.Namespace + ":" + m.Account }

// Flags are the flags of "flotilla takeover" that name the manager; none for the default.
func (m Manager) Flags() string {
	flags := ""
	if m.Namespace != Default().Namespace {
		flags += " --from-namespace " + m.Namespace
	}
	if m.Account != Default().Account {
		flags += " --from-account " + m.Account
	}
	return flags
}

// Deployments returns the Deployments that run as the manager.
func (m Manager) Deployments(ctx context.Context, cluster *apply.Cluster) ([]*unstructured.Unstructured, error) {
	resource := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	deployments, err := cluster.List(ctx, resource, m.Namespace, "")
	if err != nil {
		return nil, fmt.Errorf("look for OpenKruise's manager: %w", err)
	}
	var found []*unstructured.Unstructured
	for i := range deployments {
		account, _, _ := unstructured.NestedString(deployments[i].Object, "spec", "template", "spec", "serviceAccountName")
		if account == m.Account {
			found = append(found, &deployments[i])
		}
	}
	return found, nil
}

// Configurations are the webhook configurations of OpenKruise's manager, which has these names in its code.
func Configurations() []*unstructured.Unstructured {
	return []*unstructured.Unstructured{
		configuration("MutatingWebhookConfiguration", "kruise-mutating-webhook-configuration"),
		configuration("ValidatingWebhookConfiguration", "kruise-validating-webhook-configuration"),
	}
}

func configuration(kind, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("admissionregistration.k8s.io/v1")
	object.SetKind(kind)
	object.SetName(name)
	return object
}

// Workloads returns the workloads of OpenKruise in the manager's namespace: its Deployments, and the DaemonSets that run as the
// node agent or as the manager.
func (m Manager) Workloads(ctx context.Context, cluster *apply.Cluster) ([]*unstructured.Unstructured, error) {
	found, err := m.Deployments(ctx, cluster)
	if err != nil {
		return nil, err
	}
	sets, err := cluster.List(ctx, schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}, m.Namespace, "")
	if err != nil {
		return nil, fmt.Errorf("look for OpenKruise's node agent: %w", err)
	}
	for i := range sets {
		account, _, _ := unstructured.NestedString(sets[i].Object, "spec", "template", "spec", "serviceAccountName")
		if account == m.Account || account == agent {
			found = append(found, &sets[i])
		}
	}
	return found, nil
}

// Pods returns the names of the pods that run as the manager or as the node agent.
func (m Manager) Pods(ctx context.Context, cluster *apply.Cluster) ([]string, error) {
	pods, err := cluster.List(ctx, schema.GroupVersionResource{Version: "v1", Resource: "pods"}, m.Namespace, "")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, pod := range pods {
		account, _, _ := unstructured.NestedString(pod.Object, "spec", "serviceAccountName")
		if account == m.Account || account == agent {
			names = append(names, m.Namespace+"/"+pod.GetName())
		}
	}
	return names, nil
}

// WebhookService is the Service by which the webhooks of the manager are reached.
func (m Manager) WebhookService() *unstructured.Unstructured {
	service := &unstructured.Unstructured{}
	service.SetAPIVersion("v1")
	service.SetKind("Service")
	service.SetNamespace(m.Namespace)
	service.SetName("kruise-webhook-service")
	return service
}
