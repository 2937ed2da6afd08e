package forecast

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/pods/podstate"

	"github.com/flotilla-project/flotilla/kustomize/install"
	"github.com/flotilla-project/flotilla/kustomize/workload"
)

// reader reads a scene with the rights of the user. It notes the kinds that it may not read.
type reader struct {
	client *workload.Client
	scene  *Scene
}

// Read reads the scene around a workload, without the pods of other ones. The user must be able to read the workload, its
// pods and its revisions; each other kind that cannot be read gets a line in Scene.Unread. A workload that does not exist has
// a scene without pods if a manifest of it is given.
func Read(ctx context.Context, client *workload.Client, named workload.Named, manifest *unstructured.Unstructured, now time.Time) (*Scene, error) {
	r := &reader{client: client, scene: &Scene{Kind: named.Kind, Now: now}}
	if err := r.set(ctx, named, manifest); err != nil {
		return nil, err
	}
	if err := r.pods(ctx); err != nil {
		return nil, err
	}
	if err := r.revisions(ctx); err != nil {
		return nil, err
	}
	r.manager(ctx)
	r.server()
	for _, part := range []struct {
		name string
		read func(context.Context) error
		then string
	}{
		{"nodes", r.nodes, r.scene.withoutNodes()},
		{"claims", r.claims, "pods are taken to have none"},
		{"storage classes", r.classes, "no claim is taken to grow"},
		{"resource quotas", r.quotas, "the namespace is taken to have none"},
		{"PodDisruptionBudgets", r.budgets, "the namespace is taken to have none"},
		{"PodUnavailableBudgets", r.unavailable, "the namespace is taken to have none"},
		{"WorkloadSpreads", r.spreads, "the namespace is taken to have none"},
	} {
		if err := part.read(ctx); err != nil {
			r.scene.Unread = append(r.scene.Unread, fmt.Sprintf("%s cannot be read, and %s: %s", part.name, part.then, err))
		}
	}
	return r.scene, nil
}

// resourceOf is the resource in which sets are read and edited.
func resourceOf(kind workload.Kind) schema.GroupVersionResource { return kind.In(Version) }

func (r *reader) set(ctx context.Context, named workload.Named, manifest *unstructured.Unstructured) error {
	if _, err := r.client.Served(named.Kind); err != nil {
		return err
	}
	sets := r.client.Dynamic.Resource(resourceOf(named.Kind)).Namespace(r.client.Namespace)
	found, err := sets.Get(ctx, named.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && manifest != nil {
		found, err = sets.Create(ctx, manifest, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			return fmt.Errorf("create %s as a dry run: %w", named, err)
		}
		found.SetResourceVersion("")
	}
	if err != nil {
		return fmt.Errorf("read %s in namespace %s: %w", named, r.client.Namespace, err)
	}
	r.scene.Set = found
	return nil
}

func (r *reader) pods(ctx context.Context) error {
	set, err := workload.Read(r.scene.Kind, r.scene.Set)
	if err != nil {
		return err
	}
	r.scene.Pods, err = r.client.Pods(ctx, set)
	return err
}

func (r *reader) revisions(ctx context.Context) error {
	list, err := r.client.Core.AppsV1().ControllerRevisions(r.client.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the revisions of namespace %s: %w", r.client.Namespace, err)
	}
	for i := range list.Items {
		if owner := metav1.GetControllerOfNoCopy(&list.Items[i]); owner != nil && owner.UID == r.scene.Set.GetUID() {
			r.scene.Revisions = append(r.scene.Revisions, &list.Items[i])
		}
	}
	return nil
}

// manager reads the version of the operator, and the feature gates that it was given. Who may not read it learns nothing.
func (r *reader) manager(ctx context.Context) {
	name := r.scene.Kind.Feature + "-manager"
	deployment, err := r.client.Core.AppsV1().Deployments(install.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return
	}
	r.scene.Running = deployment.Labels["app.kubernetes.io/version"]
	for _, container := range deployment.Spec.Template.Spec.Containers {
		for _, arg := range container.Args {
			if gates, has := strings.CutPrefix(arg, "--feature-gates="); has {
				r.gates(name, gates)
			}
		}
	}
}

// server reads the version of the API server.
func (r *reader) server() {
	version, err := r.client.Core.Discovery().ServerVersion()
	if err != nil {
		return
	}
	r.scene.Minor, _ = strconv.Atoi(strings.TrimSuffix(version.Minor, "+"))
}

// gates takes the feature gates of the operator over, if this version knows them.
func (r *reader) gates(operator, gates string) {
	if _, err := kinds()[r.scene.Kind.Feature](gates); err != nil {
		r.scene.Unread = append(r.scene.Unread, fmt.Sprintf("%s has feature gates %s, and the default ones are played: %s", operator, gates, err))
		return
	}
	r.scene.Gates = gates
}

func (r *reader) nodes(ctx context.Context) error {
	list, err := r.client.Core.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		r.scene.Nodes = append(r.scene.Nodes, &list.Items[i])
	}
	return nil
}

// ReadOthers reads the pods of the cluster that run and are not of the workload. Who may not read them gets a line in
// s.Unread.
func (s *Scene) ReadOthers(ctx context.Context, client *workload.Client) {
	list, err := client.Core.CoreV1().Pods("").List(ctx, metav1.ListOptions{
		FieldSelector: "status.phase!=Succeeded,status.phase!=Failed", ResourceVersion: "0",
	})
	if err != nil {
		s.Unread = append(s.Unread, fmt.Sprintf("the pods of other workloads cannot be read, and are taken to use nothing of the nodes: %s", err))
		return
	}
	mine := map[types.UID]bool{}
	for _, pod := range s.Pods {
		mine[pod.UID] = true
	}
	for i := range list.Items {
		if pod := &list.Items[i]; !mine[pod.UID] && pod.Spec.NodeName != "" {
			s.Others = append(s.Others, outline(pod))
		}
	}
}

// outline is the part of a pod that a scheduler and the kubelet of its node look at.
func outline(pod *corev1.Pod) *corev1.Pod {
	o := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: pod.Namespace,
		Name:      pod.Name,
		UID:       pod.UID,
		Labels:    pod.Labels,
	}}
	o.Spec.NodeName = pod.Spec.NodeName
	o.Spec.Overhead = pod.Spec.Overhead
	o.Status.Phase = pod.Status.Phase
	for _, c := range pod.Spec.InitContainers {
		o.Spec.InitContainers = append(o.Spec.InitContainers, corev1.Container{
			Name:          c.Name,
			Resources:     c.Resources,
			RestartPolicy: c.RestartPolicy,
		})
	}
	for _, c := range pod.Spec.Containers {
		o.Spec.Containers = append(o.Spec.Containers, corev1.Container{Name: c.Name, Resources: c.Resources})
	}
	if pending := podstate.Condition(pod, corev1.PodResizePending); pending != nil {
		o.Status.Conditions = []corev1.PodCondition{*pending}
		o.Status.InitContainerStatuses = pod.Status.InitContainerStatuses
		o.Status.ContainerStatuses = pod.Status.ContainerStatuses
	}
	return o
}

func (r *reader) claims(ctx context.Context) error {
	list, err := r.client.Core.CoreV1().PersistentVolumeClaims(r.client.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		r.scene.Claims = append(r.scene.Claims, &list.Items[i])
	}
	return nil
}

// classes reads the storage classes, if the operator may have a feature gate with which claims grow.
func (r *reader) classes(ctx context.Context) error {
	if r.scene.Kind.Name != "StatefulSet" || r.scene.Gates == "" {
		return nil
	}
	list, err := r.client.Core.StorageV1().StorageClasses().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		r.scene.Classes = append(r.scene.Classes, &list.Items[i])
	}
	return nil
}

func (r *reader) quotas(ctx context.Context) error {
	list, err := r.client.Core.CoreV1().ResourceQuotas(r.client.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		r.scene.Quotas = append(r.scene.Quotas, &list.Items[i])
	}
	return nil
}

func (r *reader) budgets(ctx context.Context) error {
	list, err := r.client.Core.PolicyV1().PodDisruptionBudgets(r.client.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		r.scene.Budgets = append(r.scene.Budgets, &list.Items[i])
	}
	return nil
}

func (r *reader) unavailable(ctx context.Context) (err error) {
	r.scene.Unavailable, err = r.list(ctx, schema.GroupResource{Group: "policy.kruise.io", Resource: "podunavailablebudgets"})
	return err
}

func (r *reader) spreads(ctx context.Context) (err error) {
	r.scene.Spreads, err = r.list(ctx, schema.GroupResource{Group: workload.Group, Resource: "workloadspreads"})
	return err
}

// list returns the objects of a kind of Flotilla in the namespace, none if its feature is not installed.
func (r *reader) list(ctx context.Context, resource schema.GroupResource) ([]*unstructured.Unstructured, error) {
	for _, version := range workload.Versions() {
		list, err := r.client.Dynamic.Resource(resource.WithVersion(version)).Namespace(r.client.Namespace).List(ctx, metav1.ListOptions{})
		if apierrors.IsNotFound(err) {
			continue // the feature is not installed, or not in this version
		}
		if err != nil {
			return nil, err
		}
		var all []*unstructured.Unstructured
		for i := range list.Items {
			all = append(all, &list.Items[i])
		}
		return all, nil
	}
	return nil, nil
}
