package ledger_test

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/anishathalye/porcupine"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
)

// size is how many pods the application of a history has.
const size = 5

// ledgerState is what a budget is, as if one process did all: how many pods are available without a grant, and which
// incarnation of each pod has a grant, 0 for none.
type ledgerState struct {
	available int32
	granted   [size]int32
}

// asked is a disruption of an incarnation of a pod. Sharp is true if nothing else happens meanwhile: then a refusal must
// not be old news, either.
type asked struct {
	pod         int
	incarnation int32
	sharp       bool
}

// returned is a new pod in the place of an incarnation that had a grant.
type returned struct {
	pod         int
	incarnation int32
}

// looked is what the server has.
type looked struct{}

// verdict is what became of a question: granted, refused, or unknown because whoever answered has died.
type verdict string

const (
	granted verdict = "granted"
	refused verdict = "refused"
	unknown verdict = "unknown"
)

// model is the specification of a ledger: at no moment are more disruptions granted than the floor leaves, each pod is
// charged once, and no grant is lost, neither to another incarnation of its pod. A refusal costs nobody anything, so that it may be old news.
func model(floor int32) porcupine.Model {
	nondeterministic := porcupine.NondeterministicModel{
		Init: func() []any { return []any{ledgerState{available: size}} },
		Step: func(state, input, output any) []any {
			s, _ := state.(ledgerState)
			switch in := input.(type) {
			case asked:
				return s.answer(in, output.(verdict), floor)
			case returned:
				if output == true {
					return s.end(in)
				}
				return []any{s}
			}
			if output == s {
				return []any{s}
			}
			return nil
		},
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%T%+v: %+v", input, input, output) },
	}
	return nondeterministic.ToModel()
}

// answer returns the states after a question that was answered so; none if that must not happen.
func (s ledgerState) answer(in asked, v verdict, floor int32) []any {
	after := s
	may := s.granted[in.pod] == in.incarnation
	if s.granted[in.pod] == 0 && s.available > floor {
		may = true
		after.available--
		after.granted[in.pod] = in.incarnation
	}
	switch {
	case v == unknown && may:
		return []any{s, after}
	case v == granted && may:
		return []any{after}
	case v == refused && may && in.sharp, v == granted:
		return nil
	}
	return []any{s}
}

// end returns the state without the grant; none if there was none.
func (s ledgerState) end(in returned) []any {
	if s.granted[in.pod] != in.incarnation {
		return nil
	}
	s.granted[in.pod] = 0
	s.available++
	return []any{s}
}

// history records what clients asked, when, and what they were told.
type history struct {
	clock   atomic.Int64
	clients atomic.Int64

	mu  sync.Mutex
	all []porcupine.Operation
}

// do records one call. What it asks for may be what it finds out first.
func (h *history) do(call func() (input, output any)) (output any) {
	begun := h.clock.Add(1)
	input, output := call()
	ended := h.clock.Add(1)
	if output == unknown {
		ended = math.MaxInt64 // it may still happen
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, porcupine.Operation{ClientId: int(h.clients.Add(1)), Input: input, Call: begun, Output: output, Return: ended})
	return output
}

// stateOf reads a status as the model has it.
func stateOf(s *v1beta1.PodUnavailableBudgetStatus) ledgerState {
	state := ledgerState{available: s.CurrentAvailable}
	for i := range size {
		_, _ = fmt.Sscanf(string(s.PodUIDs[podName(i)]), podName(i)+"/%d", &state.granted[i])
	}
	return state
}

func podName(i int) string { return fmt.Sprint("web-", i) }

// uidOf returns the UID of an incarnation of a pod.
func uidOf(i int, incarnation int32) types.UID {
	return types.UID(fmt.Sprintf("%s/%d", podName(i), incarnation))
}
