package forecast

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/workload"
)

// Objects reads the objects of a file of manifests. Items of lists count as objects. "-" is in.
func Objects(file string, in io.Reader) ([]*unstructured.Unstructured, error) {
	text, err := readFile(file, in)
	if err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		var raw runtime.RawExtension
		if err := documents.Decode(&raw); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		if len(bytes.TrimSpace(raw.Raw)) == 0 || bytes.Equal(raw.Raw, []byte("null")) {
			continue
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(raw.Raw); err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		if !object.IsList() {
			all = append(all, object)
			continue
		}
		err := object.EachListItem(func(item runtime.Object) error {
			one, ok := item.(*unstructured.Unstructured)
			if ok {
				all = append(all, one)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
	}
}

func readFile(file string, in io.Reader) ([]byte, error) {
	var text []byte
	var err error
	if file == "-" {
		text, err = io.ReadAll(in)
	} else {
		text, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return text, nil
}

// Files returns the scene around a workload as a file has it, such as the output of kubectl get -o yaml. The file must have
// the workload; it may have pods, nodes, ControllerRevisions, claims with their volumes, quotas and budgets.
func Files(objects []*unstructured.Unstructured, named workload.Named, now time.Time) (*Scene, error) {
	s := &Scene{Kind: named.Kind, Now: now}
	for _, o := range objects {
		if o.GroupVersionKind().Group == workload.Group && o.GetKind() == named.Kind.Name && o.GetName() == named.Name {
			s.Set = o
		}
	}
	if s.Set == nil {
		return nil, cli.MisuseErrorf("--pods has no %s: add the output of kubectl get %s.%s %s -o yaml", named, named.Kind.Resource, workload.Group, named.Name)
	}
	if v := s.Set.GroupVersionKind().Version; v != Version {
		return nil, cli.MisuseErrorf("--pods has %s in version %s: only %s can be played. Use kubectl get %s.%s.%s", named, v, Version, named.Kind.Resource, Version, workload.Group)
	}
	for _, o := range objects {
		if err := s.add(o); err != nil {
			return nil, fmt.Errorf("read %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	if len(s.Volumes) == 0 && slices.ContainsFunc(s.Claims, func(c *corev1.PersistentVolumeClaim) bool { return c.Spec.VolumeName != "" }) {
		s.Unread = append(s.Unread, "the file has no PersistentVolumes, and each is taken to be mountable on all nodes")
	}
	if len(s.Nodes) == 0 && s.isOnEachNode() {
		s.Unread = append(s.Unread, "the file has no nodes, and "+s.withoutNodes())
	}
	return s, nil
}

// add sorts an object of a file in.
func (s *Scene) add(o *unstructured.Unstructured) error {
	namespaced := o.GetNamespace() == s.Set.GetNamespace()
	switch o.GroupVersionKind().GroupKind().String() {
	case "Pod":
		pod := &corev1.Pod{}
		if err := convert(o, pod); err != nil {
			return err
		}
		if owned(o, s.Set) {
			s.Pods = append(s.Pods, pod)
		} else {
			s.Others = append(s.Others, outline(pod))
		}
	case "Node":
		return appendAs(&s.Nodes, o, &corev1.Node{}, true)
	case "ControllerRevision.apps":
		return appendAs(&s.Revisions, o, &appsv1.ControllerRevision{}, owned(o, s.Set))
	case "PersistentVolumeClaim":
		return appendAs(&s.Claims, o, &corev1.PersistentVolumeClaim{}, namespaced)
	case "StorageClass.storage.k8s.io":
		return appendAs(&s.Classes, o, &storagev1.StorageClass{}, true)
	case "PersistentVolume":
		return appendAs(&s.Volumes, o, &corev1.PersistentVolume{}, true)
	case "ResourceQuota":
		return appendAs(&s.Quotas, o, &corev1.ResourceQuota{}, namespaced)
	case "PodDisruptionBudget.policy":
		return appendAs(&s.Budgets, o, &policyv1.PodDisruptionBudget{}, namespaced)
	case "PodUnavailableBudget.policy.kruise.io":
		if namespaced {
			s.Unavailable = append(s.Unavailable, o)
		}
	case "WorkloadSpread.apps.kruise.io":
		if namespaced {
			s.Spreads = append(s.Spreads, o)
		}
	}
	return nil
}

// owned reports whether the set controls an object.
func owned(o, set *unstructured.Unstructured) bool {
	for _, owner := range o.GetOwnerReferences() {
		if owner.Controller != nil && *owner.Controller && owner.UID == set.GetUID() {
			return true
		}
	}
	return false
}

func appendAs[T any](all *[]*T, o *unstructured.Unstructured, as *T, wanted bool) error {
	if !wanted {
		return nil
	}
	if err := convert(o, as); err != nil {
		return err
	}
	*all = append(*all, as)
	return nil
}

func convert(o *unstructured.Unstructured, into any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, into)
}
