package scale

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/flotilla-project/flotilla/test/cluster"
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
	Machine Machine `json:"machine"`
	// Pods, Nodes and Rounds are those of Options.
	Pods   int `json:"pods"`
	Nodes  int `json:"nodes"`
	Rounds int `json:"rounds"`
	// Features are the rows of each feature.
	Features map[string][]Row `json:"features"`
}

// Machine describes the machine, on which times depend.
type Machine struct {
	// Platform is such as linux/amd64.
	Platform string `json:"platform"`
	// Cores is the number of cores.
	Cores int `json:"cores"`
	// Kubernetes is the release of the control plane, such as 1.37.2.
	Kubernetes string `json:"kubernetes"`
}

// Measure measures features, one after the other. After an error the record has the rows until then.
func Measure(ctx context.Context, root string, features []string, o Options) (Record, error) {
	commit, err := commitOf(ctx, root)
	if err != nil {
		return Record{}, err
	}
	run := Record{
		Commit: commit, Date: time.Now().UTC().Truncate(time.Second), Pods: o.Pods, Nodes: o.Nodes, Rounds: o.Rounds,
		Machine:  Machine{runtime.GOOS + "/" + runtime.GOARCH, runtime.NumCPU(), cmp.Or(os.Getenv(cluster.KubernetesVariable), cluster.DefaultKubernetes)},
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

func commitOf(ctx context.Context, root string) (string, error) {
	describe := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
	describe.Dir = root
	out, err := describe.Output()
	if err != nil {
		return "", fmt.Errorf("find the commit of the work tree: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// short returns the first digits of a commit, with its suffix.
func short(commit string) string {
	digits, suffix, dirty := strings.Cut(commit, "-")
	digits = digits[:min(len(digits), 12)]
	if dirty {
		return digits + "-" + suffix
	}
	return digits
}

// Write writes the record into the folder, under a name of its date and commit, and returns the file.
func (r Record) Write(folder string) (string, error) {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return "", fmt.Errorf("encode the record: %w", err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", fmt.Errorf("make the folder of records: %w", err)
	}
	file := filepath.Join(folder, r.Date.Format("20060102T150405Z")+"-"+short(r.Commit)+".json")
	if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil {
		return "", fmt.Errorf("write the record: %w", err)
	}
	return file, nil
}

// ReadRecord reads the file of a record.
func ReadRecord(file string) (Record, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return Record{}, fmt.Errorf("read a record: %w", err)
	}
	var r Record
	if err := json.Unmarshal(text, &r); err != nil {
		return Record{}, fmt.Errorf("decode record %s: %w", file, err)
	}
	return r, nil
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
		fmt.Fprintf(table, "%s\t%s\t%s\t%.3g\t%.3g\t%s\t%s\n", v.Feature, v.Load, v.Bound, v.Measured, v.Limit, verdict, short(v.Commit))
	}
	return broken, table.Flush()
}
