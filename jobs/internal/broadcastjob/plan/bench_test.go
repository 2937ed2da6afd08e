package plan

import "testing"

// The bigger a job, the more a pass may cost, but no more than in proportion.
func BenchmarkAPassOverFiveThousandNodes(b *testing.B) {
	var s Snapshot
	s.Job, s.Now = job(), now
	for i := range 5000 {
		name := "node-" + string(rune('a'+i/676)) + string(rune('a'+i/26%26)) + string(rune('a'+i%26))
		s.Nodes = append(s.Nodes, node(name))
		s.Pods = append(s.Pods, pod("p"+name, name, running))
	}
	b.ReportAllocs()
	for b.Loop() {
		Compute(s)
	}
}
