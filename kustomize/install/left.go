package install

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/catalog"
)

const (
	// barrierVariable is the environment variable that keeps a container of feature daemon behind its launch barrier.
	barrierVariable = "KRUISE_CONTAINER_BARRIER"
	// barrierLabel marks the ConfigMaps with the barriers that are open.
	barrierLabel = "apps.kruise.io/container-launch-barrier"
	// copyLabel marks the copies of pull secrets that feature jobs makes.
	copyLabel = "imagepulljobs.kruise.io/source-uid"
	// copies is the namespace of these copies.
	copies = "kruise-daemon-config"
)

// tellLeft prints what waits for an operator that goes, and what it alone would tidy up. Objects that cannot be listed do not
// block the removal.
func (u *uninstaller) tellLeft(ctx context.Context, cluster *apply.Cluster, feature catalog.Feature) {
	var sentence string
	var err error
	switch {
	case feature.Name == "daemon":
		sentence, err = lookBehindBarriers(ctx, cluster)
	case feature.Name == "jobs" && !u.crds: // with its CRDs the manager deletes the jobs and their copies
		sentence, err = lookForCopies(ctx, cluster)
	}
	if err != nil {
		sentence = fmt.Sprintf("what %s leaves behind cannot be checked: %s", feature.Name, err)
	}
	if sentence != "" {
		u.warnOf(sentence)
	}
}

func lookBehindBarriers(ctx context.Context, cluster *apply.Cluster) (string, error) {
	pods, err := cluster.ListPods(ctx, "Pending")
	if err != nil {
		return "", err
	}
	opened, err := cluster.List(ctx, schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "", barrierLabel)
	if err != nil {
		return "", err
	}
	names := behindBarriers(pods, opened)
	if len(names) == 0 {
		return "", nil
	}
	return fmt.Sprintf("pods: %d wait behind a launch barrier, and their next containers start only when daemon is installed again: %s",
		len(names), firstOf(names)), nil
}

// behindBarriers returns the pods with a container that only the operator lets start: its key is not in the ConfigMap of the pod
// yet.
func behindBarriers(pods, opened []unstructured.Unstructured) []string {
	open := map[string]map[string]string{}
	for _, one := range opened {
		open[one.GetNamespace()+"/"+one.GetName()], _, _ = unstructured.NestedStringMap(one.Object, "data")
	}
	var names []string
	for _, pod := range pods {
		if pod.GetDeletionTimestamp() != nil {
			continue
		}
		for _, barrier := range barriersOf(pod) {
			if _, is := open[pod.GetNamespace()+"/"+barrier.configMap][barrier.key]; !is {
				names = append(names, pod.GetNamespace()+"/"+pod.GetName())
				break
			}
		}
	}
	return names
}

// barrier is the key of a ConfigMap without which the kubelet does not create a container.
type barrier struct{ configMap, key string }

// barriersOf returns the barriers of the containers of a pod that have never started.
func barriersOf(pod unstructured.Unstructured) []barrier {
	started := map[string]bool{}
	statuses, _, _ := unstructured.NestedSlice(pod.Object, "status", "containerStatuses")
	for _, status := range statuses {
		fields, _ := status.(map[string]any)
		name, _ := fields["name"].(string)
		_, waits, _ := unstructured.NestedMap(fields, "state", "waiting")
		_, before, _ := unstructured.NestedMap(fields, "lastState", "terminated")
		started[name] = before || !waits
	}
	containers, _, _ := unstructured.NestedSlice(pod.Object, "spec", "containers")
	var all []barrier
	for _, container := range containers {
		fields, _ := container.(map[string]any)
		name, _ := fields["name"].(string)
		variables, _, _ := unstructured.NestedSlice(fields, "env")
		for _, variable := range variables {
			fields, _ := variable.(map[string]any)
			if fields["name"] != barrierVariable || started[name] {
				continue
			}
			if configMap, is, _ := unstructured.NestedString(fields, "valueFrom", "configMapKeyRef", "name"); is {
				key, _, _ := unstructured.NestedString(fields, "valueFrom", "configMapKeyRef", "key")
				all = append(all, barrier{configMap: configMap, key: key})
			}
		}
	}
	return all
}

func lookForCopies(ctx context.Context, cluster *apply.Cluster) (string, error) {
	found, err := cluster.List(ctx, schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, copies, copyLabel)
	if err != nil || len(found) == 0 {
		return "", err
	}
	var names []string
	for _, secret := range found {
		names = append(names, secret.GetName())
	}
	return strings.Join([]string{
		fmt.Sprintf("secrets: %d copies of pull secrets stay in namespace %s: %s.", len(names), copies, firstOf(names)),
		"To have them deleted, delete their ImagePullJobs while the operator runs. Without it: kubectl -n " + copies + " delete secrets -l " + copyLabel,
	}, " "), nil
}
