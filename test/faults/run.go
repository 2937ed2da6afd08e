package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/bundle"

	"github.com/flotilla-project/flotilla/test/install"
)

// Verdict is the result of one fault.
type Verdict struct {
	Fault  string `json:"fault"`
	Breaks string `json:"breaks"`
	// Excused are the nodes with pods that count as available while their node is broken.
	Excused []string `json:"excused,omitempty"`
	// Began is the begin of the fault, Held the time from there to its end, and Completed the time from its end until all
	// rollouts were complete, both in seconds.
	Began     time.Time `json:"began"`
	Held      float64   `json:"held"`
	Completed float64   `json:"completed"`
	// States is the number of states that the watcher saw, and Relists how often it had to list the objects again.
	States  int `json:"states"`
	Relists int `json:"relists"`
	// Evictions are those that a client asked for meanwhile.
	Evictions Evictions `json:"evictions"`
	// Violations are the rules that were broken.
	Violations []Violation `json:"violations,omitempty"`
	// Lost is the work that was not complete within the limit.
	Lost string `json:"lost,omitempty"`
}

// Evictions count requests to evict a pod under a budget.
type Evictions struct {
	Granted int `json:"granted"`
	Refused int `json:"refused"`
	Failed  int `json:"failed"`
}

// ended returns the end of the fault.
func (v Verdict) ended() time.Time { return v.Began.Add(time.Duration(v.Held * float64(time.Second))) }

// Resilient reports whether no rule was broken and all rollouts were complete.
func (v Verdict) Resilient() bool { return len(v.Violations) == 0 && v.Lost == "" }

// rules returns the invariants of the workloads.
func rules(excuse Excuse) []Rule {
	return []Rule{
		enough("inplace", 3, excuse), // the budget allows one, the CloneSet two
		enough("surge", 3, excuse), enough("ordered", 2, excuse), enoughNodes("everywhere", Nodes-1, excuse), enough("guarded", 2, excuse),
		atMost("inplace", 5), atMost("surge", 4), atMost("ordered", 4), atMost("everywhere", Nodes),
		onePerNode("everywhere"), onePerNode("once"), onePerOrdinal("ordered", 4), stays("inplace"), stays("restarted"),
		enough("parted", 3, excuse), atMost("parted", 4), newAtMost("parted", 2), stays("parted"), outOfService("parted"),
		enough("paused", 2, excuse), atMost("paused", 2), newAtMost("paused", 0), stays("paused"),
		stays("bystander"), untouched("bystander"),
		leavesAtMost("inplace", 2), leavesAtMost("parted", 2), // once more than the update needs, where its writes are refused: G9
		outOfService("inplace"), claimsStay(), oneJobAtATime(), restartsAtMost("restarted", 1),
	}
}

// Run judges one fault. Objects and logs of a fault that was not survived are kept in a folder below evidence.
func (s *Stage) Run(ctx context.Context, f Fault, evidence string) (Verdict, error) {
	s.say("%s: creating workloads", f.Name)
	if err := s.renew(ctx); err != nil {
		return Verdict{}, err
	}
	namespace, objects, err := s.given(ctx, f.Name)
	if err := errors.Join(err, s.awaitRemoved(ctx)); err != nil {
		return Verdict{}, err
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	w, err := Watch(watching, s.Client, namespace)
	if err != nil {
		return Verdict{}, err
	}
	v, err := s.play(ctx, f, w, namespace, objects)
	if err != nil {
		return v, err
	}
	stop()
	history, relists := w.End()
	v.States, v.Relists = len(history), relists
	v.Violations = Judge(history, rules(Excuse{
		Nodes: f.Nodes,
		From:  v.Began,
		To:    v.ended(),
	}))
	if !v.Resilient() {
		return v, s.keep(ctx, namespace, filepath.Join(evidence, namespace))
	}
	return v, s.remove(ctx, namespace)
}

// play injects the fault in the middle of the rollouts, and returns when they are complete or patience is over.
func (s *Stage) play(ctx context.Context, f Fault, w *Watcher, namespace string, objects []*unstructured.Unstructured) (Verdict, error) {
	v := Verdict{Fault: f.Name, Breaks: f.Breaks, Excused: f.Nodes}
	evicting, stop := context.WithCancel(ctx)
	defer stop()
	evictions := make(chan Evictions, 1)
	go func() { evictions <- s.evict(evicting, namespace) }()
	objects, err := s.begin(ctx, namespace, objects)
	if err != nil {
		return v, err
	}
	err = until(ctx, func(context.Context) error {
		if slices.ContainsFunc(w.Now().of("inplace"), func(p Pod) bool { return p.Image == newImage }) {
			return nil
		}
		return errors.New("no pod is being updated")
	})
	if err != nil {
		return v, err
	}
	s.say("%s: injecting the fault", f.Name)
	v.Began = time.Now()
	if err := s.inject(ctx, f); err != nil {
		return v, fmt.Errorf("inject fault %s: %w", f.Name, err)
	}
	v.Held = time.Since(v.Began).Seconds()
	s.say("%s: waiting for the rollouts", f.Name)
	linger(ctx, rest)
	stop()
	v.Evictions = <-evictions
	e := ending{after: v.ended(), recreated: map[string]bool{f.Recreates: true}, closed: w.closed()}
	err = until(ctx, func(ctx context.Context) error { return s.complete(ctx, namespace, objects, e) })
	if err != nil {
		v.Lost = err.Error()
	}
	v.Completed = time.Since(v.ended()).Seconds()
	return v, ctx.Err()
}

// inject injects the fault and ends it.
func (s *Stage) inject(ctx context.Context, f Fault) error {
	err := f.Inject(ctx, s)
	if err == nil {
		linger(ctx, f.Hold)
	}
	if f.End != nil {
		err = errors.Join(err, f.End(context.WithoutCancel(ctx), s))
	}
	return err
}

// evict asks for the eviction of a pod of the guarded Deployment every second, until the context ends.
func (s *Stage) evict(ctx context.Context, namespace string) (e Evictions) {
	for {
		list := &corev1.PodList{}
		err := s.Client.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{"app": "guarded"})
		if err == nil && len(list.Items) > 0 {
			err = s.Client.SubResource("eviction").Create(ctx, &list.Items[rand.IntN(len(list.Items))], &policyv1.Eviction{})
		}
		switch {
		case ctx.Err() != nil:
			return e
		case err == nil:
			e.Granted++
		case apierrors.IsTooManyRequests(err):
			e.Refused++
		default:
			e.Failed++
		}
		linger(ctx, time.Second)
	}
}

// keep writes the objects of the namespace and the logs of the operators into the folder.
func (s *Stage) keep(ctx context.Context, namespace, folder string) error {
	s.say("keeping objects and logs in %s", folder)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	pods, err := s.managers(ctx)
	problems := []error{err, bundle.Write(ctx, s.Cluster.RESTConfig(), namespace, folder)}
	target := install.Local(s.Cluster)
	for i := range pods {
		for _, previous := range []string{"false", "true"} {
			said, err := target.Command(ctx, "-n", pods[i].Namespace, "logs", pods[i].Name, "--previous="+previous).CombinedOutput()
			if err != nil && previous == "true" {
				continue
			}
			name := strings.Join([]string{pods[i].Name, previous, "log"}, ".")
			problems = append(problems, err, os.WriteFile(filepath.Join(folder, name), said, 0o600))
		}
	}
	return errors.Join(problems...)
}
