package scale

import (
	"context"
	"slices"
	"sync"
	"time"
)

// samplePeriod is the time between two samples of memory.
const samplePeriod = 200 * time.Millisecond

// meter measures the cost of processes since its start.
type meter struct {
	processes []process
	before    []float64 // CPU time

	stop    context.CancelFunc
	sampler sync.WaitGroup
	memory  [][]int // samples of each process
	err     error   // of the first sample that could not be taken
}

// startMeter starts a meter, which takes samples until its cost is asked for or ctx ends.
func startMeter(ctx context.Context, processes []process) (*meter, error) {
	m := &meter{processes: processes, memory: make([][]int, len(processes))}
	for _, p := range processes {
		cpu, err := p.cpu()
		if err != nil {
			return nil, err
		}
		m.before = append(m.before, cpu)
	}
	if err := m.sample(); err != nil {
		return nil, err
	}
	ctx, m.stop = context.WithCancel(ctx)
	m.sampler.Go(func() { m.err = m.samples(ctx) })
	return m, nil
}

func (m *meter) samples(ctx context.Context) error {
	ticker := time.NewTicker(samplePeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if err := m.sample(); err != nil {
			return err
		}
	}
}

func (m *meter) sample() error {
	for i, p := range m.processes {
		mib, err := p.memory()
		if err != nil {
			return err
		}
		m.memory[i] = append(m.memory[i], mib)
	}
	return nil
}

// cost ends the meter and returns the cost of each process, by name.
func (m *meter) cost() (map[string]Cost, error) {
	m.stop()
	m.sampler.Wait()
	if m.err != nil {
		return nil, m.err
	}
	costs := map[string]Cost{}
	for i, p := range m.processes {
		cpu, err := p.cpu()
		if err != nil {
			return nil, err
		}
		slices.Sort(m.memory[i])
		costs[p.name] = Cost{CPU: cpu - m.before[i], MemoryMiB: percentile(m.memory[i], 95)}
	}
	return costs, nil
}

// percentile returns the value below which that share of the sorted values is, 0 if there are none.
func percentile[T any](sorted []T, percent int) (value T) {
	if len(sorted) == 0 {
		return value
	}
	return sorted[len(sorted)*percent/100]
}
