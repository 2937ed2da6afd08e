package ledger

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/flotilla-project/flotilla/core/testing/seeds"
)

const (
	clients = 6
	limit   = 3
)

// holders says which clients have a seat.
type holders [clients]bool

func (h holders) free() (n int) {
	for _, has := range h {
		if !has {
			n++
		}
	}
	return n - clients + limit
}

// Calls of a history: a client takes a seat, the controller frees one, somebody looks.
type (
	takes struct{ client int }
	frees struct{ client int }
	looks struct{}
)

// model is the specification: at no moment do more clients have seats than there are, and no seat is lost.
func model() porcupine.Model {
	nondeterministic := porcupine.NondeterministicModel{
		Init: func() []any { return []any{holders{}} },
		Step: func(state, input, output any) []any {
			before, _ := state.(holders)
			after := before
			switch in := input.(type) {
			case takes:
				after[in.client] = true
				may := before.free() > 0 && !before[in.client]
				switch {
				case output == "unknown" && may:
					return []any{before, after}
				case output == "granted" && may:
					return []any{after}
				case output == "granted":
					return nil
				}
				return []any{before}
			case frees:
				after[in.client] = false
				if output == "unknown" {
					return []any{before, after}
				}
				return []any{after}
			}
			if output == before {
				return []any{before}
			}
			return nil
		},
	}
	return nondeterministic.ToModel()
}

// Two processes and a controller share an object from views that lag, over connections that break before and after
// writes. The checker finds an order in which one process could have given all the answers.
func TestDecisionsAreLinearizable(t *testing.T) {
	answers := map[any]int{}
	seeds.Each(t, 100, func(t *testing.T, seed uint64) {
		t.Helper()
		h := newHistory(t, seed)
		var all sync.WaitGroup
		for i := range clients {
			all.Go(func() {
				for range 4 {
					h.take(i)
					h.free(i)
				}
			})
		}
		all.Wait()
		h.look(t)
		require.True(t, porcupine.CheckOperations(model(), h.all), "%d operations have no order", len(h.all))
		for _, o := range h.all {
			if _, ok := o.Input.(takes); ok {
				answers[o.Output]++
			}
		}
	})
	for _, answer := range []any{"granted", "refused", "unknown"} {
		assert.Positive(t, answers[answer], answer)
	}
}

// The checker would notice.
func TestHistoriesThatNoLedgerMayHave(t *testing.T) {
	at := func(n int64, input, output any) porcupine.Operation {
		return porcupine.Operation{ClientId: int(n), Input: input, Call: 2 * n, Output: output, Return: 2*n + 1}
	}
	taken := []porcupine.Operation{at(1, takes{1}, "granted"), at(2, takes{2}, "granted"), at(3, takes{3}, "granted")}
	full := holders{false, true, true, true}
	assert.True(t, porcupine.CheckOperations(model(), append(taken, at(4, takes{4}, "refused"), at(5, looks{}, full))))
	assert.False(t, porcupine.CheckOperations(model(), append(taken, at(4, takes{4}, "granted"))), "a seat is taken twice")
	assert.False(t, porcupine.CheckOperations(model(), append(taken, at(4, looks{}, holders{false, true, true}))), "a seat is lost")
	assert.False(t, porcupine.CheckOperations(model(), append(taken, at(4, frees{1}, "done"), at(5, looks{}, full))), "a freed seat is back")
}

// history records what was asked, when, and what the answer was.
type history struct {
	*server

	ledgers [2]*seats
	view    atomic.Pointer[appsv1.ReplicaSet] // of the cache
	clock   atomic.Int64
	turn    atomic.Int64

	mu     sync.Mutex
	random *rand.Rand
	all    []porcupine.Operation
}

func newHistory(t *testing.T, seed uint64) *history {
	t.Helper()
	h := &history{server: newServer(t, limit), random: rand.New(rand.NewPCG(seed, 0))} //nolint:gosec // it is to be repeated
	h.before = func(int32, string) error { return h.sometimes("the connection broke before the write") }
	h.lost = func(int32) error { return h.sometimes("the answer was lost") }
	for i := range h.ledgers {
		h.ledgers[i] = newSeats(h, h)
	}
	h.view.Store(h.get(t))
	return h
}

// sometimes returns an error.
func (h *history) sometimes(what string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.random.IntN(10) == 0 {
		return errors.New(what)
	}
	return nil
}

// do records one call.
func (h *history) do(input any, call func() any) {
	begun := h.clock.Add(1)
	output := call()
	ended := h.clock.Add(1)
	if output == "unknown" {
		ended = math.MaxInt64 // it may still happen
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, porcupine.Operation{ClientId: len(h.all), Input: input, Call: begun, Output: output, Return: ended})
}

// next returns a ledger that has a view, which is brought up to date now and then.
func (h *history) next() (*seats, *appsv1.ReplicaSet) {
	n := h.turn.Add(1)
	if n%3 == 0 {
		rs := &appsv1.ReplicaSet{}
		if h.Get(context.Background(), object, rs) == nil {
			h.view.Store(rs)
		}
	}
	return h.ledgers[n%2], h.view.Load()
}

func (h *history) take(i int) {
	h.do(takes{i}, func() any {
		l, rs := h.next()
		q := &taking{who: fmt.Sprint(i)}
		_, err := l.Ask(context.Background(), rs, q)
		return map[bool]any{true: "unknown", false: map[bool]any{true: "granted", false: "refused"}[q.granted]}[err != nil]
	})
}

func (h *history) free(i int) {
	h.do(frees{i}, func() any {
		l, rs := h.next()
		_, err := l.Write(context.Background(), rs, func(newest *appsv1.ReplicaSet) *appsv1.ReplicaSet { return freed(newest, fmt.Sprint(i)) })
		return map[bool]any{true: "unknown", false: "done"}[err != nil]
	})
}

func (h *history) look(t *testing.T) {
	t.Helper()
	h.do(looks{}, func() any {
		rs, all := h.get(t), map[string]bool{}
		for _, c := range rs.Status.Conditions {
			assert.False(t, all[string(c.Type)], "%s has two seats", c.Type)
			all[string(c.Type)] = true
		}
		var has holders
		for i := range has {
			has[i] = all[fmt.Sprint(i)]
		}
		return has
	})
}
