package disruption

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/conversion"
)

// FreshFor is how long an entry covers further requests for its pod. Later ones renew it, so that it outlives them.
const FreshFor = 3 * time.Second

// maxNamed is how many pods are named that are in the way.
const maxNamed = 5

// Request is a disruption of a pod that a budget covers.
type Request struct {
	// Pod is the pod as stored before the request.
	Pod       *corev1.Pod
	Operation v1beta1.PubOperation
	// ResizeApart is true if a resize is protected only by budgets that name RESIZE.
	ResizeApart bool
	// Recorded is true if this process has recorded the operation for this version of the pod less than FreshFor ago. A
	// record of another process may be older than it looks.
	Recorded bool
	Now      time.Time
}

// Verdict is the answer of one budget to a request.
type Verdict struct {
	// Refused is the reason why the request must not be carried out; empty if it may.
	Refused string
	// Next is the status to be written before the request is carried out; nil if nothing is to be recorded.
	Next *v1beta1.PodUnavailableBudgetStatus
	// Confirm is true if the request may be carried out only if the server still has the status.
	Confirm bool
}

// Decide returns whether a budget grants a request.
//
// A request is free and leaves no trace if it disrupts nothing, if a user has exempted it, or if the budget does not
// protect from it: the numbers follow when the pods are seen to change. Only a disruption that has passed the budget lets
// its pod go again. A budget with numbers that do not follow from its present spec grants nothing.
func Decide(b *v1beta1.PodUnavailableBudget, req Request) Verdict {
	s := &b.Status
	switch {
	case !IsProtected(req.Pod), IsExempt(req.Pod), isIgnored(b, req.Pod), !Protects(b, req.Operation, req.ResizeApart):
		return Verdict{}
	case s.ObservedGeneration != b.Generation:
		return Verdict{Refused: refusal(b, req, "its status is being updated for the new spec; retry")}
	case s.DesiredAvailable == 0:
		return Verdict{Confirm: true}
	case req.Recorded:
		return Verdict{}
	case passes(s, req.Pod):
		return Verdict{Next: Record(s, req.Pod, req.Operation, req.Now)}
	case isClosed(s, req.Pod):
		return Verdict{Refused: refusal(b, req, "earlier allowed disruptions of this pod have not happened; retry when the last one has expired")}
	case s.CurrentAvailable <= s.DesiredAvailable:
		return Verdict{Refused: refusal(b, req, numbers(b)+inTheWay(b, req.Now)+wayOut)}
	case isTaken(s, req.Pod):
		return Verdict{Refused: refusal(b, req, "an allowed disruption of another pod of this name is still pending; retry")}
	case isFull(s):
		return Verdict{Refused: refusal(b, req, fmt.Sprintf("%d allowed disruptions are still pending; retry", MaxGrants))}
	}
	return Verdict{Next: Record(s, req.Pod, req.Operation, req.Now)}
}

func isFull(s *v1beta1.PodUnavailableBudgetStatus) bool {
	return len(s.DisruptedPods)+len(s.UnavailablePods) >= MaxGrants
}

// isIgnored reports whether the budget's ignoredPodSelector matches the pod. One that cannot be read, or is empty,
// matches none.
func isIgnored(b *v1beta1.PodUnavailableBudget, pod *corev1.Pod) bool {
	by := b.Spec.IgnoredPodSelector
	if text, ok := b.Annotations[v1beta1.IgnoredPodSelectorAnnotation]; ok && by == nil {
		by, _ = conversion.IgnoredPods(text)
	}
	selector, err := metav1.LabelSelectorAsSelector(by)
	return err == nil && !selector.Empty() && selector.Matches(labels.Set(pod.Labels))
}

// wayOut names the options of a user if a budget is used up.
const wayOut = "; retry later, or exempt the pod with annotation " + v1beta1.NoProtectAnnotation + "=true"

func refusal(b *v1beta1.PodUnavailableBudget, req Request, why string) string {
	return fmt.Sprintf("PodUnavailableBudget %s/%s refuses %s of pod %s: %s", b.Namespace, b.Name, req.Operation, req.Pod.Name, why)
}

func numbers(b *v1beta1.PodUnavailableBudget) string {
	s := &b.Status
	of := ""
	if s.TotalReplicas > 0 { // pods without a workload have no replicas
		of = fmt.Sprintf(" of %d", s.TotalReplicas)
	}
	return fmt.Sprintf("%d available, %d required%s (%s)", s.CurrentAvailable, s.DesiredAvailable, of, limit(&b.Spec))
}

func limit(spec *v1beta1.PodUnavailableBudgetSpec) string {
	switch {
	case spec.MaxUnavailable != nil:
		return "maxUnavailable " + spec.MaxUnavailable.String()
	case spec.MinAvailable != nil:
		return "minAvailable " + spec.MinAvailable.String()
	}
	return "no limit"
}

// inTheWay names the pods that use the budget up: those with grants, and those that the controller has found unavailable.
func inTheWay(b *v1beta1.PodUnavailableBudget, now time.Time) string {
	s := &b.Status
	var all []string
	for _, name := range slices.Sorted(maps.Keys(s.DisruptedPods)) {
		at := s.DisruptedPods[name]
		all = append(all, name+" (deletion allowed "+ago(at, now)+left(at, Life, "up to", now)+")")
	}
	for _, name := range slices.Sorted(maps.Keys(s.UnavailablePods)) {
		if _, twice := s.DisruptedPods[name]; !twice {
			at := s.UnavailablePods[name]
			all = append(all, name+" (update allowed "+ago(at, now)+left(at, UnavailableLife, "at least", now)+")")
		}
	}
	text := NamesOf(all)
	if c := meta.FindStatusCondition(s.Conditions, ConditionExhausted); c != nil && c.Status == metav1.ConditionTrue {
		text = strings.Trim(text+", "+c.Message, ", ")
	}
	if text == "" {
		return ""
	}
	return "; blocked by: " + text
}

func ago(at metav1.Time, now time.Time) string {
	return max(0, now.Sub(at.Time)).Truncate(time.Second).String() + " ago"
}

// left describes how much longer a grant counts without a visible effect.
func left(at metav1.Time, life time.Duration, bound string, now time.Time) string {
	more := min(at.Add(life).Sub(now), life).Truncate(time.Second)
	if more <= 0 {
		return ""
	}
	return fmt.Sprintf("; counted for %s %s more", bound, more)
}

// NamesOf joins the first few texts.
func NamesOf(all []string) string {
	if len(all) <= maxNamed {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:maxNamed], ", "), len(all)-maxNamed)
}
