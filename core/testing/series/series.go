// Package series reads what an operator's metrics show. It is for tests only.
package series

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Of returns the series of the gauges and counters with names that begin with the prefix and with the namespace as a
// label, in the registry of controller-runtime: the rest of the name, the other labels in the order of their names, and the
// value, such as "pods[web allowed]=1".
func Of(t testing.TB, prefix, namespace string) (all []string) {
	t.Helper()
	families, err := metrics.Registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		name, ours := strings.CutPrefix(family.GetName(), prefix)
		for _, m := range family.GetMetric() {
			var labels []string
			inNamespace := false
			for _, label := range m.GetLabel() {
				if label.GetName() == "namespace" {
					inNamespace = label.GetValue() == namespace
				} else {
					labels = append(labels, label.GetValue())
				}
			}
			if ours && inNamespace {
				all = append(all, fmt.Sprintf("%s%v=%v", name, labels, m.GetGauge().GetValue()+m.GetCounter().GetValue()))
			}
		}
	}
	slices.Sort(all)
	return all
}
