package plan

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	nodeimage "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

// A pass in the middle of a job: of so many nodes half have pulled, a hundred are pulling and ten of them have ended since.
func BenchmarkPass(b *testing.B) {
	for _, nodes := range []int{500, 5000} {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			j := job()
			j.Spec.Parallelism = new(intstr.FromInt(100))
			s := Snapshot{Job: j, TTL: 300 * time.Second, Now: now}
			for i := range nodes {
				s.Targets = append(s.Targets, image(fmt.Sprintf("n%04d", i)))
			}
			begun := func(n int) {
				j.Spec.Parallelism = new(intstr.FromInt(n))
				p := Compute(s)
				for _, step := range p.Steps {
					for k := range step.Actions {
						s.Targets[k] = apply(b, &step.Actions[k], s.Targets[k])
					}
				}
			}
			begun(nodes/2 + 90)
			for i, target := range s.Targets[:nodes/2] {
				told := nodeimage.ImageTagStatus{Tag: "1.25", Phase: nodeimage.ImageSucceeded}
				s.Targets[i] = target.DeepCopy()
				s.Targets[i].Status.ImageStatuses = map[string]nodeimage.ImageStatus{"nginx": {Tags: []nodeimage.ImageTagStatus{told}}}
			}
			s.Owned = s.Targets[:nodes/2+90]
			j.Spec.Parallelism = new(intstr.FromInt(100))
			b.ReportAllocs()
			for b.Loop() {
				if p := Compute(s); len(p.Steps) != 1 || len(p.Steps[0].Actions) != 10 {
					b.Fatal(p.String())
				}
			}
		})
	}
}
