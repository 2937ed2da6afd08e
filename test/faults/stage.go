package faults

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/test/cluster"
	"github.com/flotilla-project/flotilla/test/install"
)

var (
	//go:embed workloads.yaml
	workloads []byte
	//go:embed rollouts.yaml
	rollouts []byte
)

// Stage is the cluster on which faults are injected.
type Stage struct {
	Cluster *cluster.Cluster
	Client  client.WithWatch
	// Out receives progress, one line a step.
	Out io.Writer

	saved   []unstructured.Unstructured // by a fault, for its end
	leaving []string                    // namespaces of faults that were judged
}

// Features are those that are installed, in this order.
func Features() []string {
	return []string{"cloneset", "statefulset", "daemonset", "spread", "budget", "daemon", "jobs"}
}

// NewStage installs all features on a running cluster.
func NewStage(ctx context.Context, c *cluster.Cluster, out io.Writer) (*Stage, error) {
	if err := install.Apps(ctx, c, out); err != nil {
		return nil, err
	}
	for _, feature := range Features() {
		if err := install.Feature(ctx, c, feature, out); err != nil {
			return nil, err
		}
	}
	api, err := client.NewWithWatch(c.RESTConfig(), client.Options{})
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return &Stage{Cluster: c, Client: api, Out: out}, nil
}

// say prints a line of progress with the time.
func (s *Stage) say(format string, args ...any) {
	fmt.Fprintf(s.Out, time.Now().Format("15:04:05 ")+format+"\n", args...)
}

// documents returns the objects of a YAML text in the namespace.
func documents(text []byte, namespace string) ([]*unstructured.Unstructured, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	var all []*unstructured.Unstructured
	for {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(o)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("decode the objects: %w", err)
		}
		o.SetNamespace(namespace)
		all = append(all, o)
	}
}

// given makes a namespace with the workloads, waits until their pods are ready, and returns its name and the objects.
func (s *Stage) given(ctx context.Context, prefix string) (string, []*unstructured.Unstructured, error) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "faults-" + prefix + "-"}}
	if err := s.Client.Create(ctx, ns); err != nil {
		return "", nil, fmt.Errorf("make a namespace: %w", err)
	}
	objects, err := documents(workloads, ns.Name)
	if err != nil {
		return ns.Name, nil, err
	}
	for _, o := range objects {
		if err := until(ctx, func(ctx context.Context) error { return s.Client.Create(ctx, o) }); err != nil {
			return ns.Name, nil, fmt.Errorf("create %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	err = until(ctx, func(ctx context.Context) error {
		return s.reached(ctx, ns.Name, before())
	})
	return ns.Name, objects, err
}

// begin begins the rollouts, and adds what it creates to the objects.
func (s *Stage) begin(ctx context.Context, namespace string, objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	edits, err := documents(rollouts, namespace)
	if err != nil {
		return nil, err
	}
	there := map[string]bool{}
	for _, o := range objects {
		there[o.GetKind()+" "+o.GetName()] = true
	}
	for _, o := range edits {
		write := func(ctx context.Context) error { return s.Client.Create(ctx, o) }
		if there[o.GetKind()+" "+o.GetName()] {
			patch, err := o.MarshalJSON()
			if err != nil {
				return nil, fmt.Errorf("encode an edit: %w", err)
			}
			write = func(ctx context.Context) error {
				return s.Client.Patch(ctx, o, client.RawPatch(types.MergePatchType, patch))
			}
		} else {
			objects = append(objects, o)
		}
		if err := until(ctx, write); err != nil {
			return nil, fmt.Errorf("begin the rollout of %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return objects, nil
}

// remove deletes the namespace. The next fault waits for its end: an API server that starts again offers its kinds one after
// the other, and a namespace that is deleted meanwhile leaves objects of those that are missing.
func (s *Stage) remove(ctx context.Context, namespace string) error {
	s.leaving = append(s.leaving, namespace)
	return s.Client.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
}

// awaitRemoved waits until the removed namespaces are gone.
func (s *Stage) awaitRemoved(ctx context.Context) error {
	for _, name := range s.leaving {
		err := until(ctx, func(ctx context.Context) error {
			err := s.Client.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{})
			if err == nil {
				return fmt.Errorf("namespace %s is there", name)
			}
			return client.IgnoreNotFound(err)
		})
		if err != nil {
			return fmt.Errorf("wait for the end of an earlier fault: %w", err)
		}
	}
	s.leaving = nil
	return nil
}

// managers returns the pods of managers and node agents.
func (s *Stage) managers(ctx context.Context) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	err := until(ctx, func(ctx context.Context) error {
		return s.Client.List(ctx, list, client.InNamespace(install.Namespace))
	})
	var pods []corev1.Pod
	for _, o := range list.Items {
		if o.DeletionTimestamp == nil {
			pods = append(pods, o)
		}
	}
	return pods, err
}

// renew replaces the pods of operators that have restarted, and waits until all are ready. A kubelet waits longer before
// each restart of a container, and faults must not add up.
func (s *Stage) renew(ctx context.Context) error {
	pods, err := s.managers(ctx)
	if err != nil {
		return err
	}
	for i := range pods {
		if p := podOf(&pods[i]); p.Restarts == 0 {
			continue
		}
		if err := until(ctx, func(ctx context.Context) error { return client.IgnoreNotFound(s.Client.Delete(ctx, &pods[i])) }); err != nil {
			return fmt.Errorf("replace pod %s: %w", pods[i].Name, err)
		}
	}
	return until(ctx, func(ctx context.Context) error {
		now, err := s.managers(ctx)
		if len(now) != len(pods) {
			err = errors.Join(err, fmt.Errorf("there are %d pods, and there were %d", len(now), len(pods)))
		}
		for i := range now {
			if p := podOf(&now[i]); !p.Ready || p.Restarts > 0 {
				err = errors.Join(err, fmt.Errorf("pod %s is not ready", p.Name))
			}
		}
		return err
	})
}
