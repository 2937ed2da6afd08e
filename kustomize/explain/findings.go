package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/progress"
	"github.com/flotilla-project/flotilla/kustomize/workload"
)

// World has the facts about a workload that the rules use. Facts that could not be read are absent.
type World struct {
	Set  *workload.Set
	Pods []*corev1.Pod
	// Nodes are the nodes of the pods, by name.
	Nodes map[string]*corev1.Node
	// Warnings are events of type Warning about the workload and its pods, the newest first.
	Warnings []corev1.Event
	Quotas   []corev1.ResourceQuota
	Budgets  []Budget
	// Manager is the operator of the kind; nil if nothing is known of it.
	Manager *Manager
	Now     time.Time
	// Unread names the kinds that could not be read.
	Unread []string
}

// Budget protects pods of the workload.
type Budget struct {
	Kind, Name string
	// Allowed is how many disruptions it would grant now.
	Allowed int
}

// Manager is the Deployment of an operator.
type Manager struct {
	Namespace, Name string
	// Absent means that there is none.
	Absent bool
	Ready  int
}

// Finding is one cause why a workload waits.
type Finding struct {
	// Why is a sentence that names the cause.
	Why string `json:"why"`
	// Help is a sentence that names the remedy; empty if no action is needed.
	Help string `json:"help,omitempty"`
	// Objects are the objects that block the workload, as kubectl names objects.
	Objects []string `json:"objects,omitempty"`
}

// Explanation is the whole answer about a workload. It is the output of -o json.
type Explanation struct {
	progress.Report
	Findings []Finding `json:"findings"`
	// ToGo is the time that the rollout still takes, such as "about 4 minutes to go"; empty unless its forecast has been right.
	ToGo string `json:"toGo,omitempty"`
	// Unread names the kinds that could not be read, for instance because a permission is missing.
	Unread []string `json:"unread,omitempty"`
}

// Explain returns why a workload waits. Causes that others follow from come first.
func Explain(w World) Explanation {
	w.Pods = slices.Clone(w.Pods)
	workload.SortPods(w.Pods)
	e := Explanation{
		Report:   progress.Judge(w.Set),
		Findings: []Finding{},
		Unread:   w.Unread,
	}
	if w.Set.Deleting {
		e.Findings = deleted(w)
		return e
	}
	for _, rule := range []func(World) []Finding{
		unseen, refused, paused, troubled, held, resizing, ending, onLostNodes, notReady, failing, kept,
	} {
		e.Findings = append(e.Findings, rule(w)...)
	}
	for _, rule := range []func(World) []Finding{waiting, recent} {
		if len(e.Findings) == 0 && e.Phase != progress.Complete {
			e.Findings = append(e.Findings, rule(w)...)
		}
	}
	return e
}

func deleted(w World) []Finding {
	f := Finding{Why: "It is being deleted."}
	if finalizers := w.Set.Finalizers(); len(finalizers) > 0 {
		f.Why = fmt.Sprintf("It is being deleted and waits for finalizer %s.", strings.Join(finalizers, ", "))
		f.Help = "Check the controllers that remove these finalizers."
	}
	return []Finding{f}
}

// unseen finds an operator that does not do its work.
func unseen(w World) []Finding {
	if w.Set.Observed >= w.Set.Generation {
		return nil
	}
	name := w.Set.Kind.Feature + "-manager"
	f := Finding{
		Why:  fmt.Sprintf("Its operator, %s, has not processed the latest change.", name),
		Help: "If this lasts, check the operator: flotilla status",
	}
	switch m := w.Manager; {
	case m == nil:
	case m.Absent:
		f.Help = fmt.Sprintf("Deployment %s was not found in namespace %s. Unless another operator manages the kind: flotilla install %s",
			m.Name, m.Namespace, w.Set.Kind.Feature)
	case m.Ready == 0:
		f.Why = fmt.Sprintf("Its operator is down: Deployment %s in namespace %s has no ready pod.", m.Name, m.Namespace)
		f.Help = fmt.Sprintf("Find the cause: kubectl -n %s describe deployment %s", m.Namespace, m.Name)
		f.Objects = []string{"deployment/" + m.Name}
	}
	return []Finding{f}
}

func paused(w World) []Finding {
	if left := w.Set.Old(); w.Set.Paused && left > 0 {
		return []Finding{{
			Why:  fmt.Sprintf("Its update is paused, and %s at an older revision.", apply.Count(left, "pod stays", "pods stay")),
			Help: "To continue: flotilla rollout resume " + w.Set.String(),
		}}
	}
	return nil
}

// kept finds old pods that are meant to stay.
func kept(w World) []Finding {
	old := w.Set.Old()
	switch {
	case w.Set.Paused || old == 0:
		return nil
	case w.Set.OnDelete:
		return []Finding{{
			Why:  fmt.Sprintf("Its strategy is OnDelete: %s at an older revision until you delete them.", apply.Count(old, "pod stays", "pods stay")),
			Help: "Delete these pods, or set spec.updateStrategy.type to RollingUpdate.",
		}}
	case w.Set.Target == workload.Unknown:
		return []Finding{{Why: "Its update is limited to the nodes that match rollingUpdate.selector."}}
	case w.Set.Target < w.Set.Wanted:
		return []Finding{{
			Why:  fmt.Sprintf("Its partition keeps %d of %d %s at an older revision.", w.Set.Wanted-w.Set.Target, w.Set.Wanted, w.Set.Kind.Pods),
			Help: "To continue, lower rollingUpdate.partition; 0 updates all.",
		}}
	}
	return nil
}

// failing returns the operator's reports about writes that fail and about work that it cannot do.
func failing(w World) []Finding {
	var all []Finding
	for _, c := range w.Set.Conditions {
		if c.Status == "True" && (c.Type == "Stalled" || strings.HasPrefix(c.Type, "Failed")) {
			all = append(all, say(c))
		}
	}
	return all
}

// waiting returns the operator's reason to wait, where no other rule knows it.
func waiting(w World) []Finding {
	if c := w.Set.Condition("Ready"); c != nil && c.Status == "False" {
		return []Finding{say(*c)}
	}
	return nil
}

func say(c workload.Condition) Finding {
	return Finding{Why: fmt.Sprintf("Its operator reports %s: %s", c.Reason, sentence(c.Message)), Help: helpFor(c.Reason)}
}

// mostWarnings is how many events are shown.
const mostWarnings = 3

// recent returns the newest warnings about the workload and its pods, one of each reason.
func recent(w World) []Finding {
	var all []Finding
	seen := map[string]bool{}
	for i := range w.Warnings {
		e := &w.Warnings[i]
		if seen[e.Reason] || len(all) == mostWarnings {
			continue
		}
		seen[e.Reason] = true
		object := strings.ToLower(e.InvolvedObject.Kind) + "/" + e.InvolvedObject.Name
		all = append(all, Finding{
			Why:     fmt.Sprintf("Event %[2]s of %[1]s: %[3]s", object, e.Reason, sentence(e.Message)),
			Objects: []string{object},
		})
	}
	return all
}

// sentence ends a text with a full stop.
func sentence(text string) string {
	text = strings.TrimSpace(text)
	if text == "" || strings.HasSuffix(text, ".") {
		return text
	}
	return text + "."
}
