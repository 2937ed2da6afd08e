package pass

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/plan/action"
)

const (
	// oneWay is how long a request takes to the server, and its answer back.
	oneWay = 2 * time.Millisecond
	// cacheLag is how late the cache shows what the server has.
	cacheLag = 3 * time.Millisecond
	// countFor is how long it takes to compute a status.
	countFor = 4 * time.Millisecond
)

// shared is a server with one object whose status others write, too, at a steady pace.
type shared struct {
	clock   *clocktesting.FakeClock
	every   time.Duration // between writes of others on average, 0 for none
	random  *rand.Rand
	next    time.Time
	version int
	changed []time.Time // by version
	ours    int         // the foreign writes that our last status counts
	refuses bool        // a conflict is reported though nobody has written
	patches int
}

func newShared(clock *clocktesting.FakeClock, every time.Duration) *shared {
	return &shared{clock: clock, every: every, random: rand.New(rand.NewPCG(1, 0)), next: clock.Now().Add(every), changed: []time.Time{clock.Now()}}
}

// pass lets time pass, and others write.
func (s *shared) pass(d time.Duration) {
	end := s.clock.Now().Add(d)
	for s.every > 0 && !s.next.After(end) {
		s.clock.SetTime(s.next)
		s.write()
		s.next = s.next.Add(time.Duration(s.random.Int64N(int64(2 * s.every))))
	}
	s.clock.SetTime(end)
}

func (s *shared) write() {
	s.version++
	s.changed = append(s.changed, s.clock.Now())
}

// cached is the object as the cache shows it.
func (s *shared) cached() *appsv1.ReplicaSet {
	v := s.version
	for v > 0 && s.clock.Since(s.changed[v]) < cacheLag {
		v--
	}
	return s.at(v)
}

// at is the object in a version. Its generation stays.
func (s *shared) at(version int) *appsv1.ReplicaSet {
	o := &appsv1.ReplicaSet{ObjectMeta: metaOf("web")}
	o.ResourceVersion, o.Status.Replicas = strconv.Itoa(version), int32(version)
	return o
}

// ServeHTTP answers as the API server.
func (s *shared) ServeHTTP(answer http.ResponseWriter, r *http.Request) {
	s.pass(oneWay)
	defer s.pass(oneWay)
	answer.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodPatch {
		s.patches++
		var patch struct{ Metadata metav1.ObjectMeta }
		if err := json.NewDecoder(r.Body).Decode(&patch); err != nil || s.refuses || patch.Metadata.ResourceVersion != strconv.Itoa(s.version) {
			answer.WriteHeader(http.StatusConflict)
			_ = json.NewEncoder(answer).Encode(metav1.Status{
				TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
				Code: http.StatusConflict, Reason: metav1.StatusReasonConflict, Message: "modified",
			})
			return
		}
		s.write()
		s.ours = s.version
	}
	o := s.at(s.version)
	o.TypeMeta = metav1.TypeMeta{Kind: "ReplicaSet", APIVersion: "apps/v1"}
	_ = json.NewEncoder(answer).Encode(o)
}

// counting is a pass that writes into the status how often the object was written.
func (s *shared) counting(w *world, renew bool) Pass {
	count := func(o client.Object) client.Object {
		s.pass(countFor)
		after, _ := o.DeepCopyObject().(*appsv1.ReplicaSet)
		after.Status.ObservedGeneration = int64(after.Status.Replicas) + 1
		return after
	}
	object := s.cached()
	p := Pass{Object: object, Plan: action.Plan{
		Now:      w.clock.Now(),
		Notices:  []action.Notice{{Type: corev1.EventTypeNormal, Reason: "Reported", Note: object.ResourceVersion, WithStatus: true}},
		Refusals: w.controller.KnownRefusals(object, nil, 0, w.clock.Now()),
	}}
	p.Status = func(action.Failures) client.Object { return count(object) }
	if renew {
		p.Renew = func(newer client.Object) (client.Object, []action.Notice) {
			return count(newer), []action.Notice{{Type: corev1.EventTypeNormal, Reason: "Reported", Note: newer.GetResourceVersion(), WithStatus: true}}
		}
	}
	return p
}

// Others may write the same status as often as they like: it is never older than two seconds.
func TestAStatusThatOthersWriteIsUpToDate(t *testing.T) {
	for _, perSecond := range []int{10, 50, 100} {
		t.Run(fmt.Sprint(perSecond), func(t *testing.T) {
			w := givenWorld(t)
			s := newShared(w.clock, time.Second/time.Duration(perSecond))
			w.serve(s)
			begin, last, longest := w.clock.Now(), w.clock.Now(), time.Duration(0)
			for w.clock.Since(begin) < time.Minute {
				before := s.ours
				_, err := w.controller.Run(t.Context(), s.counting(w, true))
				require.NoError(t, err)
				longest = max(longest, w.clock.Since(last))
				if s.ours != before {
					last = w.clock.Now()
				}
				s.pass(50 * time.Millisecond) // the event of a write starts the next pass
			}
			assert.Less(t, longest, 2*time.Second)
		})
	}
}

// A conflict that somebody else's write explains is no refusal, and one that nothing explains is.
func TestOnlyConflictsThatNothingExplainsAreRefusals(t *testing.T) {
	for name, test := range map[string]struct {
		refuses, others, renew bool
		patches                int // with ten passes
		told                   string
	}{
		"others write, and the status is renewed":     {others: true, renew: true, patches: 20, told: "Normal Reported"},
		"others write, and the next pass tries again": {others: true, patches: 10},
		"the server reports a conflict":               {refuses: true, renew: true, patches: 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := givenWorld(t)
			s := newShared(w.clock, 0)
			s.refuses = test.refuses
			w.serve(s)
			for range 10 {
				p := s.counting(w, test.renew)
				if test.others {
					s.write()
				}
				_, err := w.controller.Run(t.Context(), p)
				require.NoError(t, err)
				s.pass(50 * time.Millisecond)
			}
			assert.Equal(t, test.patches, s.patches)
			told := w.told()
			if test.told == "" {
				assert.Empty(t, told)
				return
			}
			require.Len(t, told, 10, "once for each status that was written")
			assert.Contains(t, told[0], test.told+" 1", "of the version that was written")
		})
	}
}
