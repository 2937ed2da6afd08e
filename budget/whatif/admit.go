package whatif

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	coreadmission "github.com/flotilla-project/flotilla/core/operator/admission"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/disruption"
)

// Admit is for Options.Admission of the world: it refuses a deletion or a change of a pod where a server with the budgets of
// the world refuses it. Unless the world is watched, that begins now.
func (b *Budgets) Admit(w *cluster.World, e cluster.Event) error {
	pod, ok := e.Old.(*corev1.Pod)
	name := webhookFor(e)
	if !ok || name == "" || pod.Namespace == metav1.NamespaceSystem {
		return nil
	}
	b.Watch(w)
	request := coreadmission.Request[*corev1.Pod]{
		Operation:   admissionv1.Delete,
		Subresource: e.Subresource,
		Old:         pod,
		Namespace:   pod.Namespace,
		Name:        pod.Name,
		DryRun:      e.DryRun,
		User:        authenticationv1.UserInfo{Username: e.Actor},
	}
	if after, ok := e.Object.(*corev1.Pod); ok && e.Type == cluster.Modified {
		request.Operation, request.New = admissionv1.Update, after
	}
	return cluster.Denied(name, b.webhook.Change(quiet(), request))
}

// webhookFor returns the name of the webhook in config/webhook that a server calls for an event of a pod; empty for none.
func webhookFor(e cluster.Event) string {
	switch {
	case e.Type == cluster.Deleted, e.Type == cluster.Modified && e.Subresource == "resize":
		return "vpod.budget.kb.io"
	case e.Type == cluster.Modified && e.Subresource == "":
		return "vpodupdate.budget.kb.io"
	case e.Type == cluster.Modified && e.Subresource == "status":
		return "vpodstatus.budget.kb.io"
	}
	return ""
}

// inMemory is the ledger of budgets whose statuses are kept here. A world has one writer, so that a decision is recorded as
// soon as it is made.
type inMemory struct{ budgets *Budgets }

// Check implements admission.Ledger.
func (l inMemory) Check(b *v1beta1.PodUnavailableBudget, req disruption.Request) string {
	return l.budgets.records.Decide(l.budgets.count(quiet(), b), req, l.budgets.world.Now()).Refused
}

// Ask implements admission.Ledger. A grant is counted at once: it lasts from the moment at which it is first seen.
func (l inMemory) Ask(ctx context.Context, b *v1beta1.PodUnavailableBudget, req disruption.Request) (refused string, err error) {
	counted := l.budgets.count(ctx, b)
	now := l.budgets.world.Now()
	verdict := l.budgets.records.Decide(counted, req, now)
	if verdict.Next != nil {
		l.budgets.records.Add(b, req, now)
		l.budgets.count(ctx, l.budgets.keep(counted, *verdict.Next, nil))
	}
	return verdict.Refused, nil
}
