package scale

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/flotilla-project/flotilla/test/records"
)

// GateRounds is the number of rounds of the means of record.
const GateRounds = 5

// Record is one run of the gate, as its file has it.
type Record struct {
	// Commit is the commit that was measured, with the suffix -dirty if the work tree differed from it.
	Commit string `json:"commit"`
	// Date is when the run began.
	Date time.Time `json:"date"`
	// Machine is where it ran.
	Machine records.Machine `json:"machine"`
	// Pods, Nodes and Rounds are those of Options.
	Pods   int `json:"pods"`
	Nodes  int `json:"nodes"`
	Rounds int `json:"rounds"`
	// Features are the rows of each feature.
	Features map[string][]Row `json:"features"`
}

// Measure measures features, one after the other. After an error the record has the rows until then.
func Measure(ctx context.Context, root string, features []string, o Options) (Record, error) {
	commit, err := records.Commit(ctx, root)
	if err != nil {
		return Record{}, err
	}
	run := Record{
		Commit:   commit,
		Date:     time.Now().UTC().Truncate(time.Second),
		Pods:     o.Pods,
		Nodes:    o.Nodes,
		Rounds:   o.Rounds,
		Machine:  records.ThisMachine(),
		Features: map[string][]Row{},
	}
	for _, feature := range features {
		fmt.Fprintf(o.Progress, "measuring %s\n", feature)
		o.Feature, o.gate = feature, true
		rows, err := Run(ctx, o)
		run.Features[feature] = rows
		if err != nil {
			return run, fmt.Errorf("measure %s: %w", feature, err)
		}
	}
	return run, nil
}

// Write writes the record into the folder, under a name of its date and commit, and returns the file.
func (r Record) Write(folder string) (string, error) {
	return records.Write(folder, r.Date, r.Commit, r)
}

// ReadRecord reads the file of a record.
func ReadRecord(file string) (Record, error) {
	var r Record
	err := records.Read(file, &r)
	return r, err
}

// PrintVerdicts writes a table of the verdicts and returns how many bounds are broken.
func PrintVerdicts(out io.Writer, verdicts []Verdict) (broken int, err error) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "feature\tload\tbound\tmeasured\tlimit\tverdict\tcommit")
	for _, v := range verdicts {
		verdict := "ok"
		if v.Broken() {
			verdict = "BROKEN"
			broken++
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%.3g\t%.3g\t%s\t%s\n", v.Feature, v.Load, v.Bound, v.Measured, v.Limit, verdict, records.Short(v.Commit))
	}
	return broken, table.Flush()
}
