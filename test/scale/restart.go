package scale

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cloneset "github.com/flotilla-project/flotilla/cloneset/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/audit"
	"github.com/flotilla-project/flotilla/test/managers"
)

const (
	// setsPerNamespace is how many sets share a namespace.
	setsPerNamespace = 10
	// seed is the name of the set that is copied to make all others. It must not occur in any other text of its
	// objects.
	seed = "seedling"
	// calm is the time without a write after which a set counts as settled.
	calm = 3 * time.Second
	// scrapeInterval is the time between two scrapes of the operator's metrics. Each scrape costs the operator
	// milliseconds.
	scrapeInterval = 100 * time.Millisecond
)

// Restart measures the restart of a CloneSet operator that was killed, with sets that need no change: from the time at
// which the next process becomes leader to the end of the pass over the last set. There are Options.Sets sets with
// Options.Pods pods each.
func Restart(ctx context.Context, o Options) (rows []Row, err error) {
	o.Feature = "cloneset"
	made := []any{o.Sets, o.Pods, o.Nodes, setsPerNamespace, template()}
	database, err := o.kept(ctx, "sets", made, func(ctx context.Context, b *bench) error { return b.fill(ctx) })
	if err != nil {
		return nil, err
	}
	b, end, err := o.open(ctx, database)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, end()) }()
	if err := b.start(ctx); err != nil {
		return nil, err
	}
	b.tell("waiting until the first operator has caught up")
	if err := b.caughtUp(ctx, o.Sets); err != nil {
		return nil, err
	}
	for round := range o.Rounds {
		for _, part := range []func(context.Context) ([]Row, error){b.restart, b.idle} {
			measured, err := part(ctx)
			for i := range measured {
				measured[i].Round = round + 1
			}
			rows = append(rows, measured...)
			if err != nil {
				return rows, err
			}
		}
	}
	return rows, nil
}

// restart kills the operator and measures the next one.
func (b *bench) restart(ctx context.Context) ([]Row, error) {
	row := Row{
		Load:       fmt.Sprintf("restart, %d sets", b.Sets),
		Pods:       b.Sets * b.Pods,
		Controller: b.operator.name,
	}
	b.tell("%s", row.Load)
	if err := b.operator.Kill(); err != nil {
		return nil, err
	}
	if err := b.audit.Skip(); err != nil {
		return nil, err
	}
	if err := b.operator.start(ctx); err != nil {
		return nil, err
	}
	meter, err := startMeter(ctx, []process{b.operator.process, b.apiServer, b.database})
	if err != nil {
		return nil, err
	}
	requests, leads, err := b.leads(ctx)
	if err != nil {
		return nil, err
	}
	if err := b.caughtUp(ctx, b.Sets); err != nil {
		return nil, err
	}
	row.Done = time.Since(leads).Seconds()
	if row.Costs, err = meter.cost(); err != nil {
		return nil, err
	}
	time.Sleep(settling)
	more, err := b.audit.Read(isAboutObjects)
	if err != nil {
		return nil, err
	}
	requests = append(requests, more...)
	row.account(onlyWrites(requests), leads, b.operator.name+"/")
	row.Reads = reads(requests, b.operator.name+"/")
	return []Row{row}, nil
}

func isAboutObjects(r audit.Request) bool { return r.Object.Resource != "" }

// leads waits until the operator is leader, which means that it has written the Lease. It returns the time of that
// write and the requests until then.
func (b *bench) leads(ctx context.Context) (requests []audit.Request, since time.Time, err error) {
	agent := b.operator.name + "/leader-election"
	err = until(ctx, "a leader", func() (bool, error) {
		more, err := b.audit.Read(isAboutObjects)
		requests = append(requests, more...)
		for _, r := range more {
			if r.UserAgent == agent && r.Verb != "get" && r.Response.Code < http.StatusMultipleChoices {
				since = r.Answered
			}
		}
		return !since.IsZero(), err
	})
	return requests, since, err
}

// caughtUp waits until the operator has completed that many passes and its queue is empty.
func (b *bench) caughtUp(ctx context.Context, sets int) error {
	return awaitEvery(ctx, scrapeInterval, "passes over all sets", func() (bool, error) {
		code, text, err := get(ctx, b.operator.Metrics)
		if err != nil || code != http.StatusOK {
			return false, err
		}
		return total(text, "controller_runtime_reconcile_total", `result="success"`) >= float64(sets) &&
			total(text, "controller_runtime_active_workers") == 0 && total(text, "workqueue_depth") == 0, nil
	})
}

// total returns the sum of the series of a metric for the CloneSet controller with the labels.
func total(text, metric string, labels ...string) float64 {
	sum := 0.0
	for line := range strings.Lines(text) {
		series, value, _ := strings.Cut(strings.TrimSpace(line), "} ")
		wanted := strings.HasPrefix(series, metric+"{") && strings.Contains(series, `controller="cloneset"`)
		for _, label := range labels {
			wanted = wanted && strings.Contains(series, label)
		}
		if number, err := strconv.ParseFloat(value, 64); wanted && err == nil {
			sum += number
		}
	}
	return sum
}

// fill makes all sets: one by the operator, with its pods on simulated nodes, and the others as copies of it.
func (b *bench) fill(ctx context.Context) error {
	if err := b.start(ctx); err != nil {
		return err
	}
	pattern, err := b.pattern(ctx)
	if err != nil {
		return fmt.Errorf("make the first set: %w", err)
	}
	// Copies must not be changed by a webhook, nor reconciled before they are complete.
	if err := b.operator.Stop(); err != nil {
		return err
	}
	if err := b.operator.Uninstall(ctx, managers.IsWebhook); err != nil {
		return fmt.Errorf("remove webhooks: %w", err)
	}
	var spaces []string
	for range (b.Sets + setsPerNamespace - 1) / setsPerNamespace {
		space, err := b.namespace(ctx)
		if err != nil {
			return err
		}
		spaces = append(spaces, space)
	}
	b.tell("copying the set %d times, with %d pods each", b.Sets-1, b.Pods)
	return forEach(ctx, b.Sets-1, func(ctx context.Context, i int) error {
		return b.copySet(ctx, pattern, spaces[i/setsPerNamespace], fmt.Sprintf("web-%04d", i))
	})
}

// pattern is a settled set with its revisions and pods, as JSON.
type pattern struct {
	set             []byte
	revisions, pods [][]byte
}

func (b *bench) pattern(ctx context.Context) (p pattern, err error) {
	space, err := b.namespace(ctx)
	if err != nil {
		return p, err
	}
	w := cloneSet()
	w.SetName(seed)
	w.SetNamespace(space)
	set := w.Object.(*cloneset.CloneSet)
	set.Spec.Selector.MatchLabels = map[string]string{"app": seed}
	set.Spec.Template.Labels = map[string]string{"app": seed}
	w.scale(int32(b.Pods))
	err = until(ctx, "the set to be accepted", func() (bool, error) { return b.client.Create(ctx, set) == nil, nil })
	if err != nil {
		return p, err
	}
	if err := b.reported(ctx, set, w.ready); err != nil {
		return p, err
	}
	time.Sleep(calm)
	if err := b.client.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
		return p, err
	}
	pods, revisions := &corev1.PodList{}, &appsv1.ControllerRevisionList{}
	if err := errors.Join(b.client.List(ctx, pods, client.InNamespace(space)), b.client.List(ctx, revisions, client.InNamespace(space))); err != nil {
		return p, err
	}
	p.set, err = json.Marshal(set)
	for i := range revisions.Items {
		text, failed := json.Marshal(&revisions.Items[i])
		p.revisions = append(p.revisions, text)
		err = errors.Join(err, failed)
	}
	for i := range pods.Items {
		text, failed := json.Marshal(&pods.Items[i])
		p.pods = append(p.pods, text)
		err = errors.Join(err, failed)
	}
	return p, err
}

// copySet makes a copy of the pattern with another name.
func (b *bench) copySet(ctx context.Context, p pattern, space, name string) error {
	set := &cloneset.CloneSet{}
	if err := renamed(p.set, space, name, set); err != nil {
		return err
	}
	status := set.Status
	if err := insist(func() error { return b.client.Create(ctx, set) }); err != nil {
		return fmt.Errorf("copy the set: %w", err)
	}
	if err := b.client.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil { // an answer may be lost
		return fmt.Errorf("copy the set: %w", err)
	}
	status.ObservedGeneration, set.Status = set.Generation, status
	if err := insist(func() error { return b.client.Status().Update(ctx, set) }); err != nil {
		return fmt.Errorf("copy the set's status: %w", err)
	}
	for _, text := range p.revisions {
		revision := &appsv1.ControllerRevision{}
		if err := renamed(text, space, name, revision); err != nil {
			return err
		}
		revision.OwnerReferences[0].UID = set.UID
		if err := insist(func() error { return b.client.Create(ctx, revision) }); err != nil {
			return fmt.Errorf("copy a revision: %w", err)
		}
	}
	for _, text := range p.pods {
		pod := &corev1.Pod{}
		if err := renamed(text, space, name, pod); err != nil {
			return err
		}
		pod.OwnerReferences[0].UID = set.UID
		if err := b.copyPod(ctx, pod); err != nil {
			return fmt.Errorf("copy a pod: %w", err)
		}
	}
	return nil
}

func (b *bench) copyPod(ctx context.Context, pod *corev1.Pod) error {
	pods := b.kube.CoreV1().Pods(pod.Namespace)
	err := insist(func() error {
		_, err := pods.Create(ctx, pod, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	return insist(func() error {
		_, err := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
		return err
	})
}

// insist sends a request again if the server is busy. It treats AlreadyExists as success, because an earlier request
// without an answer may have created the object.
func insist(ask func() error) error {
	const times = 20
	for left := times; ; left-- {
		err := ask()
		busy := apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err)
		switch {
		case busy && left > 0:
			continue
		case apierrors.IsAlreadyExists(err) && left < times:
			return nil
		}
		return err
	}
}

// renamed decodes an object of the pattern with the names replaced.
func renamed(text []byte, space, name string, into client.Object) error {
	if err := json.Unmarshal(bytes.ReplaceAll(text, []byte(seed), []byte(name)), into); err != nil {
		return fmt.Errorf("read the pattern: %w", err)
	}
	into.SetNamespace(space)
	into.SetUID("")
	into.SetResourceVersion("")
	into.SetManagedFields(nil)
	return nil
}
