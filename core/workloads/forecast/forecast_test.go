package forecast

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/inplace"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/workloads/podupdate"
)

func template(change ...func(*corev1.PodTemplateSpec)) *corev1.PodTemplateSpec {
	t := gen.Template(gen.Label("app", "web"), gen.Image("main", "app:1"))
	t.Annotations = map[string]string{"example.com/config": "1"}
	t.Spec.Containers = append(t.Spec.Containers, corev1.Container{
		Name: "proxy", Image: "proxy:1", Resources: cpu("1"),
		Env: []corev1.EnvVar{{Name: "CONFIG", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['example.com/config']"}}}},
	})
	for _, c := range change {
		c(&t)
	}
	return &t
}

func cpu(amount string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}}
}

func image(t *corev1.PodTemplateSpec)  { t.Spec.Containers[0].Image = "app:2" }
func config(t *corev1.PodTemplateSpec) { t.Annotations["example.com/config"] = "2" }
func label(t *corev1.PodTemplateSpec)  { t.Labels["tier"] = "front" }
func resize(t *corev1.PodTemplateSpec) { t.Spec.Containers[1].Resources = cpu("2") }
func port(t *corev1.PodTemplateSpec) {
	t.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80}}
}

// rollout is an edit of the template of forty pods that are updated in place where that is possible.
func rollout(change ...func(*corev1.PodTemplateSpec)) Edit {
	return Edit{
		From: template(), To: template(change...), Options: inplace.Options{EnvFromMetadata: true, Resize: true},
		Policy: podupdate.InPlaceIfPossible, Recreates: "podUpdatePolicy is ReCreate", Pods: 40, Reached: 40, MaxUnavailable: 4,
	}
}

func (e Edit) with(change func(*Edit)) Edit {
	change(&e)
	return e
}

func TestUsersAreToldWhatFollows(t *testing.T) {
	const agent = "the node agent restarts containers that keep their image: pods on nodes without it will be recreated"
	for name, c := range map[string]struct {
		edit Edit
		want []string
	}{
		"nothing changes":           {rollout(), nil},
		"the words alone change":    {rollout(func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Ports = []corev1.ContainerPort{} }), nil},
		"there are no pods":         {rollout(image).with(func(e *Edit) { e.Pods, e.Reached = 0, 0 }), nil},
		"an image":                  {rollout(image), []string{"40 of 40 pods will be updated in place, at most 4 at a time: container main (image) restarts"}},
		"a label":                   {rollout(label), []string{"40 of 40 pods will be updated in place: no container restarts; metadata changes"}},
		"resources":                 {rollout(resize), []string{"40 of 40 pods will be updated in place: no container restarts; resources change in proxy"}},
		"a port":                    {rollout(port), []string{"40 of 40 pods will be recreated, at most 4 at a time: spec.containers[0].ports: the field cannot change on a running pod"}},
		"an image and a port":       {rollout(image, port), []string{"40 of 40 pods will be recreated, at most 4 at a time: spec.containers[0].ports: the field cannot change on a running pod"}},
		"a value that is read":      {rollout(config), []string{"40 of 40 pods will be updated in place, at most 4 at a time: container proxy (environment) restarts", agent}},
		"an image and such a value": {rollout(config, image), []string{"40 of 40 pods will be updated in place, at most 4 at a time: containers main (image) and proxy (environment) restart", agent}},
		"a restart": {rollout(func(t *corev1.PodTemplateSpec) { t.Annotations[contract.RestartInPlaceAnnotation] = "1 main" }), []string{
			"40 of 40 pods will be updated in place, at most 4 at a time: container main (restart annotation) restarts", agent,
		}},
		"never in place": {rollout(image).with(func(e *Edit) { e.Policy = podupdate.ReCreate }), []string{
			"40 of 40 pods will be recreated, at most 4 at a time: podUpdatePolicy is ReCreate",
		}},
		"only in place": {rollout(port).with(func(e *Edit) { e.Policy = podupdate.InPlaceOnly }), []string{
			"no pod changes: podUpdatePolicy is InPlaceOnly, and the update is not possible in place: spec.containers[0].ports: the field cannot change on a running pod",
		}},
		"claims that count": {rollout(image).with(func(e *Edit) { e.ClaimsChange, e.Options.CompareClaims = true, true }), []string{
			"40 of 40 pods will be recreated, at most 4 at a time: spec.volumeClaimTemplates: the claim templates differ",
		}},
		"claims that do not":   {rollout(label).with(func(e *Edit) { e.ClaimsChange = true }), []string{"40 of 40 pods will be updated in place: no container restarts; metadata changes"}},
		"a partition":          {rollout(label).with(func(e *Edit) { e.Reached = 3 }), []string{"3 of 40 pods will be updated in place: no container restarts; metadata changes"}},
		"a partition of all":   {rollout(image).with(func(e *Edit) { e.Reached = 0 }), []string{"no pod changes: partition keeps all 40 pods at the older revision"}},
		"a selector":           {rollout(label).with(func(e *Edit) { e.Reached, e.Where = -1, "on nodes that the selector matches" }), []string{"pods on nodes that the selector matches will be updated in place: no container restarts; metadata changes"}},
		"paused":               {rollout(label).with(func(e *Edit) { e.Paused = true }), []string{"once the update is not paused, 40 of 40 pods will be updated in place: no container restarts; metadata changes"}},
		"OnDelete":             {rollout(image).with(func(e *Edit) { e.OnDelete = true }), []string{"no pod changes by itself: with updateStrategy type OnDelete, a pod gets the new template after you delete the old one"}},
		"surge":                {rollout(port).with(func(e *Edit) { e.MaxSurge = 2 }), []string{"40 of 40 pods will be recreated, at most 4 unavailable at a time, with up to 2 surge pods: spec.containers[0].ports: the field cannot change on a running pod"}},
		"surge alone":          {rollout(port).with(func(e *Edit) { e.MaxSurge, e.MaxUnavailable = 2, 0 }), []string{"40 of 40 pods will be recreated, with up to 2 surge pods at a time: spec.containers[0].ports: the field cannot change on a running pod"}},
		"in the middle of one": {rollout(label).with(func(e *Edit) { e.Behind = 7 }), []string{"40 of 40 pods will be updated in place: no container restarts; metadata changes", "an earlier update has not reached 7 pods: these will be recreated if its changes need that"}},
	} {
		assert.Equal(t, c.want, c.edit.Warnings(), name)
	}
}

// Kubernetes cuts longer warnings, and the lists of containers and paths have no bound.
func TestWarningsAreShort(t *testing.T) {
	e := rollout()
	e.From.Spec.Containers, e.To.Spec.Containers = nil, nil
	for i := range 30 {
		c := corev1.Container{Name: fmt.Sprintf("%s-%d", strings.Repeat("long", 14), i), Image: "a"}
		e.From.Spec.Containers = append(e.From.Spec.Containers, c)
		c.Image = "b"
		e.To.Spec.Containers = append(e.To.Spec.Containers, c)
	}
	key := strings.Repeat("é", 200)
	odd := rollout(func(t *corev1.PodTemplateSpec) { t.Spec.NodeSelector = map[string]string{key: "x"} })
	for _, edit := range []Edit{e, odd} {
		warnings := edit.Warnings()
		assert.Len(t, warnings, 1)
		assert.LessOrEqual(t, len(warnings[0]), longest)
		assert.True(t, strings.HasSuffix(warnings[0], "..."))
		assert.NotContains(t, warnings[0], "\uFFFD")
	}
	assert.Equal(t, "a, b, c, d and 2 more", list([]string{"a", "b", "c", "d", "e", "f"}))
}
