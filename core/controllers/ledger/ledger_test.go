package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func ask(t *testing.T, l *seats, rs *appsv1.ReplicaSet, who string) (bool, error) {
	t.Helper()
	q := &taking{who: who}
	_, err := l.Ask(t.Context(), rs, q)
	return q.granted, err
}

func forbidden(string) error {
	return apierrors.NewForbidden(schema.GroupResource{}, object.Name, errors.New("a policy"))
}

// Two processes give each seat away once, with far fewer writes than requests.
func TestRequestsShareWrites(t *testing.T) {
	s := newServer(t, 60)
	stale := s.get(t)
	ledgers := []*seats{newSeats(s, s), newSeats(s, s)}
	granted := make([]bool, 200)
	var all sync.WaitGroup
	for i := range granted {
		all.Go(func() {
			q := &taking{who: fmt.Sprint("pod-", i)}
			_, err := ledgers[i%2].Ask(t.Context(), stale, q)
			assert.NoError(t, err)
			granted[i] = q.granted
		})
	}
	all.Wait()
	stored := s.get(t)
	assert.Len(t, stored.Status.Conditions, 60)
	for i := range granted {
		assert.Equal(t, granted[i], hasSeat(stored, fmt.Sprint("pod-", i)), "what was answered is what is recorded")
	}
	assert.Less(t, s.writes.Load(), int32(60))
}

// What a controller reports is written together with what is granted meanwhile, from the newest version.
func TestAStatusIsWrittenBesideRequests(t *testing.T) {
	s := newServer(t, 2)
	l, rs := newSeats(s, s), s.get(t)
	for _, who := range []string{"a", "b"} {
		granted, err := ask(t, l, rs, who)
		require.NoError(t, err)
		require.True(t, granted)
	}
	written, err := l.Write(t.Context(), rs, func(newest *appsv1.ReplicaSet) *appsv1.ReplicaSet { return freed(newest, "a") })
	require.NoError(t, err)
	require.NotNil(t, written)
	assert.Equal(t, written.ResourceVersion, s.get(t).ResourceVersion)
	assert.False(t, hasSeat(written, "a"))
	assert.EqualValues(t, 3, s.writes.Load(), "the second seat was not overlooked: no write met a conflict")
	granted, err := ask(t, l, rs, "c")
	require.NoError(t, err)
	assert.True(t, granted, "the seat is free")

	written, err = l.Write(t.Context(), rs, func(newest *appsv1.ReplicaSet) *appsv1.ReplicaSet { return newest })
	require.NoError(t, err)
	assert.Nil(t, written, "nothing is to be written")
	_, err = l.Write(t.Context(), rs, func(*appsv1.ReplicaSet) *appsv1.ReplicaSet { return nil })
	require.ErrorIs(t, err, ErrOutdated)
}

// together has a request and a status answered in one batch.
func together(t *testing.T, l *seats, rs *appsv1.ReplicaSet, who string, next func(*appsv1.ReplicaSet) *appsv1.ReplicaSet) (asked, reported error) {
	t.Helper()
	batch := []*question[appsv1.ReplicaSet, *taking, *appsv1.ReplicaSet]{{request: &taking{who: who}}, {next: next}}
	for _, q := range batch {
		q.answer = make(chan answer[*appsv1.ReplicaSet], 1)
	}
	l.answer(t.Context(), l.desk(rs), l.Newest(rs), batch)
	return (<-batch[0].answer).err, (<-batch[1].answer).err
}

// A status that the server does not take stops no request, and a request that it does not take no status.
func TestNeitherHalfStopsTheOther(t *testing.T) {
	s := newServer(t, 5)
	s.before = func(_ int32, body string) error {
		if strings.Contains(body, "refused") {
			return forbidden(body)
		}
		return nil
	}
	l, rs := newSeats(s, s), s.get(t)
	status := func(name string) func(*appsv1.ReplicaSet) *appsv1.ReplicaSet {
		return func(newest *appsv1.ReplicaSet) *appsv1.ReplicaSet {
			after := newest.DeepCopy()
			after.Status.Conditions = append(after.Status.Conditions, appsv1.ReplicaSetCondition{Type: appsv1.ReplicaSetConditionType(name)})
			return after
		}
	}
	asked, reported := together(t, l, rs, "a", status("refused-1"))
	require.NoError(t, asked)
	require.ErrorContains(t, reported, "a policy")
	asked, reported = together(t, l, rs, "refused-b", status("counted"))
	require.ErrorContains(t, asked, "a policy")
	require.NoError(t, reported)
	asked, reported = together(t, l, rs, "c", status("counted-again"))
	require.ErrorContains(t, asked, "the server is asked again in")
	require.NoError(t, reported, "the pause is that of requests")
	assert.True(t, hasSeat(s.get(t), "a") && hasSeat(s.get(t), "counted") && hasSeat(s.get(t), "counted-again"))
}

// While writes are refused, what needs none is answered.
func TestRefusedWritesPauseWhatNeedsThem(t *testing.T) {
	s := newServer(t, 1)
	s.before = func(int32, string) error { return forbidden("") }
	l, rs := newSeats(s, s), s.get(t)
	for range 10 {
		_, err := ask(t, l, rs, "a")
		require.True(t, apierrors.IsForbidden(err), err)
	}
	assert.EqualValues(t, 1, s.writes.Load())
	full := freed(rs, "")
	full.UID, full.Spec.Replicas = "other", new(int32)
	granted, err := ask(t, l, full, "a")
	require.NoError(t, err)
	assert.False(t, granted)
}

// A lost answer to a write that has arrived is found on the server. One that may have arrived is an error.
func TestLostAnswers(t *testing.T) {
	cut := errors.New("the connection was lost")
	s := newServer(t, 2)
	s.lost = func(int32) error { return cut }
	granted, err := ask(t, newSeats(s, s), s.get(t), "a")
	require.NoError(t, err)
	assert.True(t, granted && hasSeat(s.get(t), "a"))
	assert.EqualValues(t, 1, s.writes.Load())

	s.lost = func(int32) error { // and somebody else has written over it
		return errors.Join(cut, s.Status().Update(context.Background(), freed(s.get(t), "b")))
	}
	_, err = ask(t, newSeats(s, s), s.get(t), "b")
	require.ErrorIs(t, err, cut)
	s.lost, s.before = nil, func(int32, string) error { return cut }
	_, err = ask(t, newSeats(s, s), s.get(t), "b")
	require.ErrorIs(t, err, cut, "it has not arrived, and is not repeated at once")
	assert.EqualValues(t, 3, s.writes.Load())
}

// A request that a lost write may have recorded together with a status is not decided again: it would meet its own seat, and be
// refused what it has.
func TestALostAnswerLeavesRequestsUnknown(t *testing.T) {
	cut := errors.New("the connection was lost")
	s := newServer(t, 2)
	l, rs := newSeats(s, s), s.get(t)
	s.lost = func(n int32) error {
		if n > 1 {
			return nil
		}
		return errors.Join(cut, s.Status().Update(context.Background(), freed(s.get(t), "counted"))) // another client writes over it
	}
	counted := func(newest *appsv1.ReplicaSet) *appsv1.ReplicaSet {
		after := freed(newest, "counted")
		after.Status.Conditions = append(after.Status.Conditions, appsv1.ReplicaSetCondition{Type: "counted"})
		return after
	}

	asked, reported := together(t, l, rs, "a", counted)

	require.ErrorIs(t, asked, cut)
	require.NoError(t, reported)
	assert.True(t, hasSeat(s.get(t), "a") && hasSeat(s.get(t), "counted"))
}

func TestAnObjectThatIsGoneIsTold(t *testing.T) {
	s := newServer(t, 2)
	l, rs := newSeats(s, s), s.get(t)
	require.NoError(t, s.Delete(t.Context(), rs.DeepCopy()))
	_, err := ask(t, l, rs, "a")
	require.ErrorIs(t, err, ErrGone)
	_, err = l.Write(t.Context(), rs, func(newest *appsv1.ReplicaSet) *appsv1.ReplicaSet { return freed(newest, "a") })
	require.ErrorIs(t, err, ErrGone)
}

// A decision that panics is an error of its requests, and the ledger goes on.
func TestAPanicIsAnError(t *testing.T) {
	s := newServer(t, 2)
	l, rs := newSeats(s, s), s.get(t)
	_, err := ask(t, l, rs, "panic")
	require.ErrorContains(t, err, "panic: a decision")
	granted, err := ask(t, l, rs, "a")
	require.NoError(t, err)
	assert.True(t, granted)
}
