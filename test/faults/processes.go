package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Fault is a part that breaks, and how.
type Fault struct {
	// Name is unique, and part of the name of a namespace.
	Name string
	// Breaks is a sentence for the table.
	Breaks string
	// Inject breaks the part and End, which may be nil, repairs it after Hold.
	Inject, End func(context.Context, *Stage) error
	Hold        time.Duration
	// Nodes are those that the fault breaks, with the pods that Excuse excuses.
	Nodes []string
	// Recreates is the kind with objects that End creates again; empty for none.
	Recreates string
}

// rest is the time between two kills.
const rest = 5 * time.Second

// All returns every fault, in the order of a run.
func All() []Fault {
	return []Fault{
		{Name: "none", Breaks: "nothing: the rollouts as they are", Inject: func(context.Context, *Stage) error { return nil }},
		{
			Name: "nospace", Breaks: "etcd with alarm NOSPACE for 30 seconds: it refuses all writes", Hold: 30 * time.Second,
			Inject: alarm("ACTIVATE"), End: alarm("DEACTIVATE"),
		},
		{
			Name: "kind", Breaks: "the CRD of ImagePullJobs removed for 20 seconds, then restored with its objects", Hold: 20 * time.Second,
			Inject: removeKind, End: restoreKind, Recreates: pullJobs().Kind,
		},
		{
			Name: "latency", Breaks: "the processes of all managers stopped for two of each three seconds, for half a minute, so that webhooks answer late",
			Inject: slowWebhooks, End: fastWebhooks,
		},
		{
			Name: "network", Breaks: "node n1 without a network for 75 seconds, so that it is NotReady", Hold: 75 * time.Second, Nodes: []string{"n1"},
			Inject: func(ctx context.Context, s *Stage) error { return s.Cluster.Node(1).Unplug(ctx) },
			End:    func(ctx context.Context, s *Stage) error { return s.Cluster.Node(1).Plug(ctx) },
		},
		{Name: "certificates", Breaks: "the Secrets with certificates of all webhooks filled with garbage", Inject: spoilCertificates},
		{
			Name: "rights", Breaks: "all rules of the ClusterRoles of all operators taken away for 30 seconds", Hold: 30 * time.Second,
			Inject: takeRights, End: giveRights,
		},
		{Name: "operators", Breaks: "`kill -9` of each manager and node agent, one after the other", Inject: killOperators},
		{Name: "apiserver", Breaks: "`kill -9` of kube-apiserver, three times", Inject: killing("kube-apiserver", "kube-apiserver", "kube-apiserver")},
		{Name: "etcd", Breaks: "`kill -9` of etcd, three times", Inject: killing("etcd", "etcd", "etcd")},
		{ // A kubelet that starts may report a ready pod as not ready once, until its first probe.
			Name: "kubelet", Breaks: "`kill -9` of the kubelet of each node, one after the other, and half a minute for their return",
			Inject: killing("n0-kubelet", "n1-kubelet", "n2-kubelet"), Hold: 30 * time.Second, Nodes: []string{"n0", "n1", "n2"},
		},
		{Name: "containerd", Breaks: "`kill -9` of the containerd of each node, one after the other", Inject: killing("n0-containerd", "n1-containerd", "n2-containerd")},
	}
}

// Choose returns the faults with these names, all of them for none.
func Choose(names []string) ([]Fault, error) {
	all := All()
	var known []string
	for _, f := range all {
		known = append(known, f.Name)
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("there is no fault %q: use one of %s", name, strings.Join(known, ", "))
		}
	}
	return slices.DeleteFunc(all, func(f Fault) bool { return len(names) > 0 && !slices.Contains(names, f.Name) }), nil
}

// killing kills processes of the cluster one after the other.
func killing(processes ...string) func(context.Context, *Stage) error {
	return func(ctx context.Context, s *Stage) error {
		for i, process := range processes {
			if i > 0 {
				linger(ctx, rest)
			}
			err := until(ctx, func(ctx context.Context) error { return s.Cluster.Kill(ctx, process) })
			if err != nil {
				return err
			}
			s.say("killed %s", process)
		}
		return nil
	}
}

// killOperators kills the process of each manager and agent.
func killOperators(ctx context.Context, s *Stage) error {
	pods, err := s.managers(ctx)
	if err != nil {
		return err
	}
	for i := range pods {
		if err := s.signal(&pods[i], syscall.SIGKILL); err != nil {
			return err
		}
		s.say("killed %s", pods[i].Name)
		linger(ctx, rest/2)
	}
	return nil
}

// signal sends a signal to the process of an operator's pod.
func (s *Stage) signal(pod *corev1.Pod, signal syscall.Signal) error {
	for _, c := range pod.Status.ContainerStatuses {
		_, id, found := strings.Cut(c.ContainerID, "://")
		if !found {
			return fmt.Errorf("pod %s has no container", pod.Name)
		}
		if err := s.Cluster.SignalContainer(id, signal); err != nil {
			return fmt.Errorf("pod %s: %w", pod.Name, err)
		}
	}
	if len(pod.Status.ContainerStatuses) == 0 {
		return errors.New("pod " + pod.Name + " has yet to start")
	}
	return nil
}
