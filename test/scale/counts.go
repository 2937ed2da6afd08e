package scale

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

const (
	// quiet is for how long operators must send no request before they count as idle.
	quiet = 5 * time.Second
	// quietTime is for how long requests of idle operators are counted.
	quietTime = 20 * time.Second
)

// Counts puts small loads on the operator of each feature, on a cluster of that name, and returns the rows by feature. Their
// requests are the same on every machine; their times and costs are of no use. All operators run until the end, when the
// requests of idle ones are counted. Of o, Pods, OperatorLog and Progress are used; there are as many nodes and NodeImages as
// pods. AdvancedCronJobs are left out, because they would wait for the next minute.
func Counts(ctx context.Context, cluster string, o Options) (rows map[string][]Row, err error) {
	o.cluster = cluster
	o.images = o.Pods
	o.Nodes = o.Pods
	o.Feature = Features()[0]
	first, end, err := o.open(ctx, "")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, end()) }()
	if err := first.startNodes(ctx); err != nil {
		return nil, err
	}
	if err := first.findProcesses(); err != nil {
		return nil, err
	}
	rows = map[string][]Row{}
	var all []*bench
	for _, feature := range inOrder() {
		b := *first
		b.Feature, b.operator = feature, &operator{}
		if err := b.connect(); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, b.operator.Stop()) }()
		if err := b.startOperator(ctx); err != nil {
			return nil, err
		}
		if rows[feature], err = b.countLoads(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", feature, err)
		}
		all = append(all, &b)
	}
	return rows, countIdle(ctx, all, rows)
}

// inOrder returns the features in the order in which Counts starts their operators. Those that play the programs of another
// feature come before it, while nothing else answers for these programs. Those that still write some time after their last load
// come before all that are left, whose loads take that time.
func inOrder() []string {
	all := Features()
	slices.SortStableFunc(all, func(a, b string) int {
		one, other := features()[a], features()[b]
		return cmp.Or(-cmp.Compare(one.needs, other.needs), -cmp.Compare(one.mark, other.mark))
	})
	return all
}

// countLoads runs the loads of the feature's own kinds.
func (b *bench) countLoads(ctx context.Context) ([]Row, error) {
	ctx, cancel := context.WithCancel(ctx) // ends the watches
	defer cancel()
	f := features()[b.Feature]
	if f.parts == nil {
		w := f.own()
		return b.run(ctx, w, b.changes(w, b.ofOperator("")))
	}
	var rows []Row
	for _, p := range f.parts(b) {
		if p.apart || p.uncounted {
			continue
		}
		measured, err := p.run(ctx)
		rows = append(rows, measured...)
		if err != nil {
			return rows, err
		}
	}
	return rows, nil
}

// countIdle waits until no operator sends requests any more, and adds a row with their requests from then on.
func countIdle(ctx context.Context, all []*bench, rows map[string][]Row) error {
	for _, b := range all {
		if err := b.unmarked(ctx); err != nil {
			return err
		}
	}
	for settled := false; !settled; {
		idle, err := requestsDuring(ctx, all, quiet)
		if err != nil {
			return fmt.Errorf("wait until the operators are idle: %w", err)
		}
		settled = true
		for _, row := range idle {
			settled = settled && len(row.Writes) == 0 && len(row.Reads) == 0 && row.Events == 0
		}
	}
	idle, err := requestsDuring(ctx, all, quietTime)
	for feature, row := range idle {
		rows[feature] = append(rows[feature], row)
	}
	return err
}

// requestsDuring counts the requests of the operators for so long.
func requestsDuring(ctx context.Context, all []*bench, long time.Duration) (map[string]Row, error) {
	for _, b := range all {
		if err := b.audit.Skip(); err != nil {
			return nil, err
		}
	}
	began := time.Now()
	if err := pass(ctx, long); err != nil {
		return nil, err
	}
	rows := map[string]Row{}
	for _, b := range all {
		row := Row{
			Load:       "idle",
			Controller: b.operator.name,
			Done:       long.Seconds(),
		}
		if err := b.count(&row, began, b.ofOperator("")); err != nil {
			return nil, err
		}
		rows[b.Feature] = row
	}
	return rows, nil
}
