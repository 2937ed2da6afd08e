package faults

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/flotilla-project/flotilla/test/records"
)

const (
	// published is the record that the docs show, and page the page with its table, in the repository.
	published = "docs/reliability/run.json"
	page      = "docs/reliability.md"
)

// Record is one run, as its file has it.
type Record struct {
	// Commit is the commit that ran, with the suffix -dirty if the work tree differed from it.
	Commit string `json:"commit"`
	// Date is the begin of the run.
	Date time.Time `json:"date"`
	// Machine is where it ran.
	Machine records.Machine `json:"machine"`
	// Verdicts are those of the faults, in the order of the run.
	Verdicts []Verdict `json:"verdicts"`
}

// RunAll judges faults one after the other. A fault that could not be injected has no verdict but an error. What is left of faults
// that broke an invariant is kept in folders below evidence.
func (s *Stage) RunAll(ctx context.Context, root string, faults []Fault, evidence string) (Record, error) {
	commit, err := records.Commit(ctx, root)
	if err != nil {
		return Record{}, err
	}
	r := Record{
		Commit:  commit,
		Date:    time.Now().UTC().Truncate(time.Second),
		Machine: records.ThisMachine(),
	}
	var failed []error
	for _, f := range faults {
		v, err := s.Run(ctx, f, evidence)
		if err != nil {
			s.say("%s: %v", f.Name, err)
			failed = append(failed, fmt.Errorf("judge fault %s: %w", f.Name, err))
			if ctx.Err() != nil {
				break
			}
			continue
		}
		s.say("%s: %s", f.Name, v.Text())
		r.Verdicts = append(r.Verdicts, v)
	}
	return r, errors.Join(failed...)
}

// Broken returns an error if a fault broke an invariant.
func (r Record) Broken() error {
	var names []string
	for _, v := range r.Verdicts {
		if !v.Resilient() {
			names = append(names, v.Fault)
		}
	}
	if len(names) > 0 {
		return fmt.Errorf("%d of %d faults broke an invariant: %s", len(names), len(r.Verdicts), strings.Join(names, ", "))
	}
	return nil
}

// Publish writes the table of the published record.
func Publish(root string) error {
	var run Record
	if err := records.Read(filepath.Join(root, published), &run); err != nil {
		return err
	}
	return records.Publish(root, page, "faults", run.table())
}

// table returns the verdicts as a table in Markdown.
func (r Record) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Commit `%s` on Kubernetes %s, %s.\n\n", records.Short(r.Commit), r.Machine.Kubernetes, r.Date.Format("2 January 2006"))
	b.WriteString("| fault | how it is injected | excused | lasted | complete after | states | evictions granted / refused / failed | verdict |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|\n")
	for _, v := range r.Verdicts {
		fmt.Fprintf(&b, "| %s | %s | %s | %.0f s | %.0f s | %d | %d / %d / %d | %s |\n", v.Fault, v.Breaks, strings.Join(v.Excused, ", "),
			v.Held, v.Completed, v.States, v.Evictions.Granted, v.Evictions.Refused, v.Evictions.Failed, v.Text())
	}
	return b.String()
}

// Text returns the verdict in words: Resilient, or the broken invariants with the seconds since the begin of the fault.
func (v Verdict) Text() string {
	if v.Resilient() {
		return "Resilient"
	}
	var all []string
	for _, x := range v.Violations {
		all = append(all, fmt.Sprintf("%s from %.1f s to %.1f s: %s", x.Invariant, x.From.Sub(v.Began).Seconds(), x.To.Sub(v.Began).Seconds(), x.Text))
	}
	if v.Lost != "" {
		all = append(all, "incomplete: "+strings.ReplaceAll(v.Lost, "\n", "; "))
	}
	return strings.Join(all, "; ")
}
