package scale

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// Row has the measurements of one load. Times are in seconds since the change of the spec, or since the first bare
// request.
type Row struct {
	// Load is the name of the load.
	Load string
	// Round is the number of the round, from 1.
	Round int
	// Pods is the number of pods of the load, or of objects of another resource, 0 for idle.
	Pods int
	// Of is the resource that the controller writes for the load; empty for pods.
	Of string `json:",omitempty"`
	// FirstWrite is the time of the controller's first write of a pod, LastWrite that of the answer to its last, and
	// LastCreate that of the answer to its last create.
	FirstWrite, LastWrite, LastCreate float64
	// Done is the time at which the load was done for all pods: ready, ready again with the new image, or deleted. For
	// idle it is the duration; after a restart it is the time from leadership to the end of the last pass.
	Done float64
	// Median and P99 are the latencies of bare requests, in milliseconds.
	Median, P99 float64 `json:",omitempty"`
	// ToReady, ToReadyP90 and ToReadyP99 are how long pods took from their creation until they were ready, median, 90th and
	// 99th percentile, where some were created: the pod startup latency, with images that need no pull.
	ToReady, ToReadyP90, ToReadyP99 float64 `json:",omitempty"`
	// StatusAge is the greatest age of what the workload's status said of its pods until all were done. It is not measured in
	// rollouts, where the number of ready pods goes up and down and says little about when it was true.
	StatusAge float64 `json:",omitempty"`
	// BudgetUsed is the share of maxUnavailable that was in use over the time of a rollout, MostOut how many pods were out of
	// service at a time at most, and Budget how many may be.
	BudgetUsed      float64 `json:",omitempty"`
	MostOut, Budget int     `json:",omitempty"`
	// Effect is when the first pod was created in the way of an edit that was made in the middle of a scale-up, counted from
	// the edit.
	Effect float64 `json:",omitempty"`
	// Writes counts the controller's writes by verb and resource, without Events and leases.
	Writes map[string]int `json:",omitempty"`
	// Reads counts its reads from the server, if they were counted.
	Reads map[string]int `json:",omitempty"`
	// Others counts the writes of all other clients, by user agent, verb and resource.
	Others map[string]int `json:",omitempty"`
	// Events counts the Events that it wrote.
	Events int
	// Conflicts counts the requests that were answered with 409; Writes counts them, too.
	Conflicts int
	// Controller names the process whose writes are counted.
	Controller string `json:",omitempty"`
	// Costs are the costs of all processes, until the controller had reported the load as done.
	Costs map[string]Cost `json:",omitempty"`
}

// Cost is the cost of one process.
type Cost struct {
	// CPU is in seconds, user and system.
	CPU float64
	// MemoryMiB is the 95th percentile of resident memory, of one sample each 200 ms.
	MemoryMiB int
}

// Rate returns pods a second.
func (r Row) Rate() float64 { return float64(r.Pods) / r.Done }

// observe adds what was seen of the pods.
func (r *Row) observe(pods *observed, budget int) {
	median, p90, p99 := pods.toReady()
	r.ToReady = median.Seconds()
	r.ToReadyP90 = p90.Seconds()
	r.ToReadyP99 = p99.Seconds()
	if budget == 0 {
		r.StatusAge = pods.oldestStatus().Seconds()
	} else {
		r.Budget = budget
		r.BudgetUsed, r.MostOut = pods.used(budget)
	}
}

// resource is what the controller writes for the load.
func (r Row) resource() string { return cmp.Or(r.Of, "pods") }

// kinds formats the writes: those of pods as a number per pod, others as a total.
func (r Row) kinds(writes map[string]int) string {
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(writes)) {
		if r.Pods > 0 && strings.Contains(kind, " "+r.resource()) {
			parts = append(parts, fmt.Sprintf("%s %.2f a %s", kind, r.each(writes[kind]), strings.TrimSuffix(r.resource(), "s")))
		} else {
			parts = append(parts, fmt.Sprintf("%s %d", kind, writes[kind]))
		}
	}
	return strings.Join(parts, ", ")
}

// each returns n per pod, or n if the load has no pods.
func (r Row) each(n int) float64 { return float64(n) / float64(max(r.Pods, 1)) }

// perPod returns the number of writes of pods per pod.
func (r Row) perPod() float64 {
	total := 0
	for kind, n := range r.Writes {
		if strings.Contains(kind, " "+r.resource()) {
			total += n
		}
	}
	return r.each(total)
}

// Print writes the rows as a table, and below it the writes of each client and the cost of each process.
func Print(out io.Writer, rows []Row) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "load\tpods\tfirst write s\tlast create s\tlast write s\tdone s\tpods/s\twrites/pod\tevents/pod\t409\tCPU s\tmemory MiB\t")
	for _, r := range rows {
		own := r.Costs[r.Controller]
		fmt.Fprintf(table, "%s\t%d\t%.2f\t%.2f\t%.2f\t%.2f\t%.0f\t%.2f\t%.2f\t%d\t%.2f\t%d\t\n", r.Load, r.Pods, r.FirstWrite,
			r.LastCreate, r.LastWrite, r.Done, r.Rate(), r.perPod(), r.each(r.Events), r.Conflicts, own.CPU, own.MemoryMiB)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, r := range rows {
		fmt.Fprintf(out, "\n%s\n", r.Load)
		if len(r.Writes) > 0 {
			fmt.Fprintf(out, "  writes: %s\n  of others: %s\n", r.kinds(r.Writes), r.kinds(r.Others))
		}
		if len(r.Reads) > 0 {
			fmt.Fprintf(out, "  reads: %s\n", Row{}.kinds(r.Reads))
		}
		if r.P99 > 0 {
			fmt.Fprintf(out, "  ms a request: median %.1f, 99th percentile %.1f\n", r.Median, r.P99)
		}
		if r.ToReadyP99 > 0 {
			fmt.Fprintf(out, "  s from creation to Ready: median %.2f, 90th percentile %.2f, 99th percentile %.2f\n", r.ToReady, r.ToReadyP90, r.ToReadyP99)
		}
		if r.StatusAge > 0 {
			fmt.Fprintf(out, "  s that the status was old at most: %.2f\n", r.StatusAge)
		}
		if r.Budget > 0 {
			fmt.Fprintf(out, "  maxUnavailable in use: %.0f%% on average, at most %d of %d\n", 100*r.BudgetUsed, r.MostOut, r.Budget)
		}
		if r.Effect > 0 {
			fmt.Fprintf(out, "  s until an edit took effect: %.2f\n", r.Effect)
		}
		if r.Pods == 0 {
			fmt.Fprintf(out, "  millicores: %.1f\n", 1000*r.Costs[r.Controller].CPU/r.Done)
		}
		fmt.Fprint(out, "  CPU s:")
		for _, name := range slices.Sorted(maps.Keys(r.Costs)) {
			fmt.Fprintf(out, " %s %.2f", name, r.Costs[name].CPU)
		}
		fmt.Fprintln(out)
	}
	return nil
}
