package manager

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/testing/gen"
)

// BenchmarkGarbage prints what the bound costs and saves: an operator's cache of pods, of which one after the other is
// replaced by one that is decoded, as a watch does. An operation is one such event.
func BenchmarkGarbage(b *testing.B) {
	text := podText(b)
	for _, pods := range []int{1_000, 10_000, 50_000} {
		for _, rule := range []struct {
			name    string
			percent func(used uint64) int
		}{
			{"100%", func(uint64) int { return 100 }},
			{"40%", func(uint64) int { return leastGarbage }},
			{"by what is in use", garbagePercent},
		} {
			b.Run(fmt.Sprintf("%d pods/%s", pods, rule.name), func(b *testing.B) {
				cached := make([]*corev1.Pod, pods)
				for i := range cached {
					cached[i] = decodePod(b, text)
				}
				defer debug.SetGCPercent(debug.SetGCPercent(rule.percent(live())))
				runtime.GC() // what was not collected by then is not the benchmark's
				peak, cpu := uint64(0), collectorSeconds()
				for i := 0; b.Loop(); i++ {
					cached[i%pods] = decodePod(b, text)
					if i%64 == 0 {
						peak = max(peak, heap())
					}
				}
				b.ReportMetric(float64(live())/(1<<20), "live-MiB")
				b.ReportMetric(float64(peak)/(1<<20), "peak-MiB")
				b.ReportMetric((collectorSeconds()-cpu)/float64(b.N)*1e6, "collector-µs/op")
				runtime.KeepAlive(cached)
			})
		}
	}
}

// podText is a pod as a watch tells it. What is decoded of it takes about as much as a cached pod.
func podText(b *testing.B) []byte {
	b.Helper()
	text, err := json.Marshal(gen.Pod("web", gen.Ready(gen.Epoch()), gen.OnNode("node"),
		gen.Annotation("note", strings.Repeat("x", 1500))))
	require.NoError(b, err)
	return text
}

func decodePod(b *testing.B, text []byte) *corev1.Pod {
	b.Helper()
	var pod corev1.Pod
	require.NoError(b, json.Unmarshal(text, &pod))
	return &pod
}

// live is what the last collection found in use, after one.
func live() uint64 {
	runtime.GC()
	return sample("/gc/heap/live:bytes").Uint64()
}

// heap is what is in use and garbage.
func heap() uint64 { return sample("/memory/classes/heap/objects:bytes").Uint64() }

func collectorSeconds() float64 {
	return sample("/cpu/classes/gc/total:cpu-seconds").Float64() - sample("/cpu/classes/gc/mark/idle:cpu-seconds").Float64()
}

func sample(name string) metrics.Value {
	samples := []metrics.Sample{{Name: name}}
	metrics.Read(samples)
	return samples[0].Value
}
