package scale

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// Row is what one load took. Times are in seconds since the spec was changed; bare requests count
// from the first.
type Row struct {
	// Load names what happened.
	Load string
	// Round is the number of the round, from 1.
	Round int
	// Pods is how many pods were concerned, 0 at idle.
	Pods int
	// FirstWrite and LastWrite are the controller's first request for a pod and the answer to its last,
	// LastCreate that of its last create.
	FirstWrite, LastWrite, LastCreate float64
	// Done is when all pods were as wanted: ready, ready again with the new image, or gone. At idle it
	// is how long that was; after a restart it is the time from leadership to the end of the last pass.
	Done float64
	// Median and P99 are how long bare requests took, in milliseconds.
	Median, P99 float64 `json:",omitempty"`
	// Writes counts the controller's writes by verb and resource, without Events and leases.
	Writes map[string]int `json:",omitempty"`
	// Reads counts what it read from the server, where that was counted.
	Reads map[string]int `json:",omitempty"`
	// Others counts everybody else's writes, by user agent, verb and resource.
	Others map[string]int `json:",omitempty"`
	// Events counts those that it wrote.
	Events int
	// Conflicts counts the requests that were answered with 409; they are among Writes too.
	Conflicts int
	// Controller names the process whose writes are counted.
	Controller string `json:",omitempty"`
	// Costs are those of all processes, until the controller had reported the load as done.
	Costs map[string]Cost `json:",omitempty"`
}

// Cost is what one process took.
type Cost struct {
	// CPU is in seconds, user and system.
	CPU float64
	// PeakMiB is the most memory that was resident.
	PeakMiB int
}

// Rate returns pods a second.
func (r Row) Rate() float64 { return float64(r.Pods) / r.Done }

// kinds tells writes as a number per pod, and those of other objects as a plain number.
func (r Row) kinds(writes map[string]int) string {
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(writes)) {
		if r.Pods > 0 && strings.Contains(kind, " pods") {
			parts = append(parts, fmt.Sprintf("%s %.2f a pod", kind, r.each(writes[kind])))
		} else {
			parts = append(parts, fmt.Sprintf("%s %d", kind, writes[kind]))
		}
	}
	return strings.Join(parts, ", ")
}

// each returns a number for each pod; it stays what it is where no pods were concerned.
func (r Row) each(n int) float64 { return float64(n) / float64(max(r.Pods, 1)) }

// perPod returns the number of writes of pods for each of them.
func (r Row) perPod() float64 {
	total := 0
	for kind, n := range r.Writes {
		if strings.Contains(kind, " pods") {
			total += n
		}
	}
	return r.each(total)
}

// Print writes the rows as a table, and below it who wrote what and what all processes took.
func Print(out io.Writer, rows []Row) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "load\tpods\tfirst write s\tlast create s\tlast write s\tdone s\tpods/s\twrites/pod\tevents/pod\t409\tCPU s\tpeak MiB\t")
	for _, r := range rows {
		own := r.Costs[r.Controller]
		fmt.Fprintf(table, "%s\t%d\t%.2f\t%.2f\t%.2f\t%.2f\t%.0f\t%.2f\t%.2f\t%d\t%.2f\t%d\t\n", r.Load, r.Pods, r.FirstWrite,
			r.LastCreate, r.LastWrite, r.Done, r.Rate(), r.perPod(), r.each(r.Events), r.Conflicts, own.CPU, own.PeakMiB)
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
