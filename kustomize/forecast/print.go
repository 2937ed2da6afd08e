package forecast

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/flotilla-project/flotilla/kustomize/apply"
)

// shownBatches is how many batches are printed; the rest is one line.
const shownBatches = 12

// Print writes a forecast for people.
func (f *Report) Print(out io.Writer) {
	for _, text := range f.Answers {
		fmt.Fprintln(out, text)
	}
	f.printBatches(out)
	fmt.Fprintf(out, "%s after %s: %s\n", f.Phase, length(f.Seconds), f.Message)
	fmt.Fprintf(out, "  pods: %s\n", f.pods())
	fmt.Fprintf(out, "  available: %d before, never fewer than %d; at most %s at once\n", f.Available, f.LowestAvailable, apply.Count(f.MostPods, "pod", "pods"))
	for _, w := range f.Waits {
		fmt.Fprintf(out, "  waits %s from %s on: %s: %s\n", length(w.Lasts), length(w.Seconds), w.Reason, w.Message)
	}
	for _, b := range f.Budgets {
		fmt.Fprintf(out, "  %s %s: %s\n", b.Kind, b.Name, b)
	}
	for _, s := range f.Subsets {
		fmt.Fprintf(out, "  WorkloadSpread %s: subset %s: %s\n", s.Spread, s.Name, s)
	}
	fmt.Fprintf(out, "  times: %s from creation to start, %s from start to ready (%s)\n", length(f.Times.Creating), length(f.Times.Starting), f.Times)
	for _, text := range f.Assumed {
		fmt.Fprintf(out, "  note: %s\n", text)
	}
}

func (f *Report) printBatches(out io.Writer) {
	if len(f.Batches) == 0 {
		return
	}
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "BATCH\tAFTER\tIN PLACE\tDELETED\tCREATED")
	for i, b := range f.Batches {
		if i == shownBatches-1 && len(f.Batches) > shownBatches {
			last := f.Batches[len(f.Batches)-1]
			fmt.Fprintf(table, "%d-%d\t%s-%s\t…\t\t\n", i+1, len(f.Batches), length(b.Seconds), length(last.Seconds))
			break
		}
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\n", i+1, length(b.Seconds), number(b.InPlace), number(b.Recreated), number(b.Added))
	}
	_ = table.Flush() // the stream's own errors end the command
	fmt.Fprintln(out)
}

func number(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

// pods counts the pods that change, by the kind of change.
func (f *Report) pods() string {
	var parts []string
	for _, part := range []struct {
		n    int
		what string
	}{{f.InPlace, "updated in place"}, {f.Recreated, "recreated"}, {f.Added, "added"}, {f.Removed, "removed"}} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	if parts == nil {
		return "none changes"
	}
	return strings.Join(parts, ", ")
}

// String describes whether the budget is kept.
func (b Budget) String() string {
	text := fmt.Sprintf("kept: it wants %d healthy pods, and has never fewer than %d", b.Desired, b.Lowest)
	switch {
	case b.Broken:
		text = fmt.Sprintf("broken: it wants %d healthy pods, and has %d at one moment", b.Desired, b.Lowest)
	case b.Lowest < b.Desired:
		text = fmt.Sprintf("not satisfied before the edit either: it wants %d healthy pods, and has %d at one moment", b.Desired, b.Lowest)
	}
	if b.Refused > 0 {
		text += fmt.Sprintf("; it refuses %s, which are tried again", apply.Count(b.Refused, "write", "writes"))
	}
	return text
}

// String describes the pods of the subset.
func (s Subset) String() string {
	text := apply.Count(s.Pods, "pod", "pods") + ", no limit"
	if s.Limit != nil {
		text = fmt.Sprintf("%d of at most %s", s.Pods, apply.Count(*s.Limit, "pod", "pods"))
	}
	if s.Closed {
		text += "; it gets no more pods, because some could not be scheduled"
	}
	return text
}

// String names the source of the times.
func (t UsedTimes) String() string {
	if t.Learnt == 0 {
		return "assumed; --start sets the second one"
	}
	return "as " + apply.Count(t.Learnt, "pod shows", "pods show")
}

// length is a time in seconds as people read it.
func length(s float64) string {
	d := time.Duration(s * float64(time.Second))
	if d >= 10*time.Second {
		d = d.Round(time.Second)
	}
	return d.String()
}
