package admission

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
)

type change = func(*v1beta1.PodUnavailableBudget)

func budget(changes ...change) *v1beta1.PodUnavailableBudget {
	b := &v1beta1.PodUnavailableBudget{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	b.Spec.MaxUnavailable = new(intstr.FromInt32(1))
	for _, c := range changes {
		c(b)
	}
	return b
}

func limit(value intstr.IntOrString) change {
	return func(b *v1beta1.PodUnavailableBudget) { b.Spec.MaxUnavailable = &value }
}

func target(apiVersion, kind, name string) change {
	return func(b *v1beta1.PodUnavailableBudget) {
		b.Spec.Selector = nil
		b.Spec.TargetReference = &v1beta1.TargetReference{APIVersion: apiVersion, Kind: kind, Name: name}
	}
}

func annotation(key, value string) change {
	return func(b *v1beta1.PodUnavailableBudget) { metav1.SetMetaDataAnnotation(&b.ObjectMeta, key, value) }
}

func selector(s *metav1.LabelSelector) change {
	return func(b *v1beta1.PodUnavailableBudget) { b.Spec.Selector = s }
}

func TestValidation(t *testing.T) {
	cases := []struct {
		name   string
		budget *v1beta1.PodUnavailableBudget
		want   string // begins with the path; empty if it is valid
	}{
		{"a selector", budget(), ""},
		{"a target", budget(target("apps/v1", "Deployment", "web")), ""},
		{"neither", budget(selector(nil)), "spec: Required value: one of selector and targetRef"},
		{"both", budget(func(b *v1beta1.PodUnavailableBudget) {
			b.Spec.TargetReference = &v1beta1.TargetReference{APIVersion: "v1", Kind: "ReplicationController", Name: "a"}
		}), "spec: Forbidden: selector and targetRef are mutually exclusive"},
		{"a target without kind", budget(target("apps/v1", "", "web")), "spec.targetRef.kind: Required value"},
		{"a pod as target", budget(target("v1", "Pod", "web")), "spec.targetRef.kind: Invalid value"},
		{"a target of no group", budget(target("a/b/c", "A", "web")), "spec.targetRef.apiVersion: Invalid value"},
		{"an empty selector", budget(selector(&metav1.LabelSelector{})), "spec.selector: Invalid value"},
		{"a wrong selector", budget(selector(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Is"}}})), "spec.selector.matchExpressions[0].operator: Invalid value"},
		{"no limit", budget(func(b *v1beta1.PodUnavailableBudget) { b.Spec.MaxUnavailable = nil }), "spec: Required value: one of maxUnavailable"},
		{"both limits", budget(func(b *v1beta1.PodUnavailableBudget) { b.Spec.MinAvailable = new(intstr.FromInt32(1)) }), "spec: Forbidden: maxUnavailable and minAvailable"},
		{"less than none", budget(limit(intstr.FromInt32(-1))), "spec.maxUnavailable: Invalid value: -1"},
		{"many", budget(limit(intstr.FromInt32(1 << 30))), ""},
		{"100%", budget(limit(intstr.FromString("100%"))), ""},
		{"101%", budget(limit(intstr.FromString("101%"))), "spec.maxUnavailable: Invalid value: \"101%\": must not be greater than 100%"},
		{"a number in quotes", budget(limit(intstr.FromString("5"))), "spec.maxUnavailable: Invalid value"},
		{"half a percent", budget(limit(intstr.FromString("2.5%"))), "spec.maxUnavailable: Invalid value"},
		{"less than 0%", budget(limit(intstr.FromString("-1%"))), "spec.maxUnavailable: Invalid value"},
		{"an unknown operation", budget(func(b *v1beta1.PodUnavailableBudget) {
			b.Spec.ProtectOperations = []v1beta1.PubOperation{"DELETE", "BOGUS"}
		}), "spec.protectOperations[1]: Unsupported value"},
		{"no replicas", budget(func(b *v1beta1.PodUnavailableBudget) { b.Spec.ProtectTotalReplicas = new(int32) }), "spec.protectTotalReplicas: Invalid value"},
		{"nothing to ignore", budget(func(b *v1beta1.PodUnavailableBudget) { b.Spec.IgnoredPodSelector = &metav1.LabelSelector{} }), "spec.ignoredPodSelector: Invalid value"},
		{"operations in an annotation", budget(annotation(v1beta1.ProtectOperationsAnnotation, "DELETE, UPDATE")), ""},
		{"unknown ones", budget(annotation(v1beta1.ProtectOperationsAnnotation, "xxxxx")), "metadata.annotations[kruise.io/pub-protect-operations]: Invalid value"},
		{"replicas in an annotation", budget(annotation(v1beta1.ProtectTotalReplicasAnnotation, "many")), "metadata.annotations[pub.kruise.io/protect-total-replicas]: Invalid value"},
		{"pods to ignore in an annotation", budget(annotation(v1beta1.IgnoredPodSelectorAnnotation, `{"matchLabels":{"canary":"yes"}}`)), ""},
		{"pods to ignore that cannot be read", budget(annotation(v1beta1.IgnoredPodSelectorAnnotation, `{"matchLabels":5}`)), "metadata.annotations[pub.kruise.io/ignored-pod-selector]: Invalid value"},
		{"pods to ignore with a typing error", budget(annotation(v1beta1.IgnoredPodSelectorAnnotation, `{"matchLables":{"canary":"yes"}}`)), "metadata.annotations[pub.kruise.io/ignored-pod-selector]: Invalid value"},
		{"nothing to ignore in an annotation", budget(annotation(v1beta1.IgnoredPodSelectorAnnotation, `{}`)), "metadata.annotations[pub.kruise.io/ignored-pod-selector]: Invalid value"},
		{"an annotation beside its field", budget(annotation(v1beta1.ProtectTotalReplicasAnnotation, "3"), func(b *v1beta1.PodUnavailableBudget) { b.Spec.ProtectTotalReplicas = new(int32(5)) }), ""},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			errs := Validate(tc.budget, nil)
			if tc.want == "" {
				assert.Empty(t, errs)
				return
			}
			if assert.Len(t, errs, 1) {
				assert.Contains(t, errs[0].Error(), tc.want)
			}
			assert.Empty(t, Validate(tc.budget, tc.budget), "what is stored does not prevent other changes")
		})
	}
}

func TestWhatIsCoveredNeverChanges(t *testing.T) {
	errs := Validate(budget(target("apps/v1", "Deployment", "web")), budget())
	assert.Len(t, errs, 2)
	assert.Empty(t, Validate(budget(limit(intstr.FromString("50%"))), budget()))
}

// A client of v1alpha1 that writes an object as it knows it does not switch the protection of more pods on unawares.
func TestWhatV1alpha1CannotSayIsNotLost(t *testing.T) {
	ignoring := func(b *v1beta1.PodUnavailableBudget) {
		b.Spec.IgnoredPodSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"canary": "yes"}}
	}
	const older, newer = "v1alpha1", "v1beta1"
	assert.Empty(t, Lost(budget(ignoring), budget(ignoring), older))
	assert.Empty(t, Lost(budget(), budget(), newer))
	assert.Empty(t, Lost(budget(), budget(ignoring), newer), "the version has a field for it")
	assert.Empty(t, Lost(budget(annotation("apps.kruise.io/accept-v1alpha1-loss", "true")), budget(ignoring), older))
	errs := Lost(budget(), budget(ignoring), older)
	if assert.Len(t, errs, 1) {
		assert.Equal(t, "spec.ignoredPodSelector: Forbidden: v1alpha1 cannot express ignoredPodSelector, and this update would remove it: "+
			"keep annotation pub.kruise.io/ignored-pod-selector, use v1beta1, or set annotation apps.kruise.io/accept-v1alpha1-loss to \"true\"", errs[0].Error())
	}
}

func TestBudgetsThatStopDrainsAreWarnedAbout(t *testing.T) {
	assert.Len(t, Warn(budget(limit(intstr.FromInt32(0)))), 1)
	assert.Len(t, Warn(budget(limit(intstr.FromString("0%")))), 1)
	assert.Empty(t, Warn(budget()))
}

func TestBudgetsThatProtectNothingOrStopDrainsAreWarnedAbout(t *testing.T) {
	least := func(n intstr.IntOrString) change {
		return func(b *v1beta1.PodUnavailableBudget) { b.Spec.MaxUnavailable, b.Spec.MinAvailable = nil, &n }
	}
	for name, c := range map[string]struct {
		limit    change
		replicas int32
		want     string
	}{
		"a percentage of one replica":   {limit(intstr.FromString("30%")), 1, "spec.maxUnavailable: 30% of 1 replicas leaves the pods of Deployment web unprotected"},
		"a percentage of more replicas": {limit(intstr.FromString("30%")), 4, ""},
		"as many as there are":          {limit(intstr.FromInt32(3)), 3, "spec.maxUnavailable: 3 of 3 replicas leaves the pods of Deployment web unprotected"},
		"all must stay":                 {least(intstr.FromInt32(3)), 3, "spec.minAvailable: 3 of 3 replicas blocks every eviction and update of the pods of Deployment web: node drains wait forever"},
		"most must stay":                {least(intstr.FromString("60%")), 2, "spec.minAvailable: 60% of 2 replicas blocks every eviction and update of the pods of Deployment web: node drains wait forever"},
		"some must stay":                {least(intstr.FromInt32(2)), 3, ""},
		"scaled to zero":                {least(intstr.FromInt32(2)), 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var want []string
			if c.want != "" {
				want = []string{c.want}
			}
			assert.Equal(t, want, WarnOfReplicas(budget(c.limit), "Deployment web", c.replicas))
		})
	}
}

func TestBudgetsMustNotCoverTheSame(t *testing.T) {
	labels := func(pairs ...string) change {
		m := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = pairs[i+1]
		}
		return selector(&metav1.LabelSelector{MatchLabels: m})
	}
	is := func(key string, op metav1.LabelSelectorOperator, values ...string) change {
		return selector(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: op, Values: values}}})
	}
	const refused, warned = "refused", "warned"
	cases := []struct {
		name string
		a, b change
		want string
	}{
		{"the same label", labels("app", "web"), labels("app", "web"), refused},
		{"another value", labels("app", "web"), labels("app", "api"), ""},
		{"one of several values", labels("app", "web"), is("app", metav1.LabelSelectorOpIn, "web", "api"), refused},
		{"any value but one", is("app", metav1.LabelSelectorOpExists), is("app", metav1.LabelSelectorOpNotIn, "x"), refused},
		{"values that exclude each other", labels("app", "x"), is("app", metav1.LabelSelectorOpNotIn, "x"), ""},
		{"with the label and without", is("app", metav1.LabelSelectorOpExists), is("app", metav1.LabelSelectorOpDoesNotExist), ""},
		{"without the label or the value", is("app", metav1.LabelSelectorOpDoesNotExist), is("app", metav1.LabelSelectorOpNotIn, "x"), refused},
		{"more labels", labels("app", "web"), labels("app", "web", "tier", "fe"), warned},
		{"other labels", labels("app", "web"), labels("tier", "fe"), warned},
		{"the same target in another version", target("apps.kruise.io/v1alpha1", "CloneSet", "web"), target("apps.kruise.io/v1beta1", "CloneSet", "web"), refused},
		{"another target", target("apps/v1", "Deployment", "web"), target("apps/v1", "Deployment", "api"), ""},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			for _, pair := range [][2]change{{tc.a, tc.b}, {tc.b, tc.a}} {
				other := budget(pair[1])
				other.Name = "other"
				errs, warnings := Compare(budget(pair[0]), nil, []*v1beta1.PodUnavailableBudget{budget(pair[0]), other})
				assert.Equal(t, tc.want == refused, len(errs) > 0)
				assert.Equal(t, tc.want == warned, len(warnings) > 0)
			}
		})
	}
}
