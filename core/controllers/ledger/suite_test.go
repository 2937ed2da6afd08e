package ledger

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake" //nolint:depguard // thousands of short histories, each of a server of its own
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// seats is a ledger whose objects have so many seats as spec.replicas says. Who has one is a condition of the status, as
// simple a record as there can be.
type seats = Ledger[appsv1.ReplicaSet, *taking, *appsv1.ReplicaSet]

// taking is a request for a seat.
type taking struct {
	who     string
	granted bool
}

func newSeats(c client.Client, live client.Reader) *seats {
	return &seats{Client: c, Live: live, Clock: clock.RealClock{}, Decide: decideSeats, Stands: func(q *taking) bool { return !q.granted }}
}

func decideSeats(batch []*taking) func(context.Context, *appsv1.ReplicaSet) (Decision[*appsv1.ReplicaSet], error) {
	return func(_ context.Context, rs *appsv1.ReplicaSet) (d Decision[*appsv1.ReplicaSet], err error) {
		after := rs.DeepCopy()
		for _, q := range batch {
			if q.who == "panic" {
				panic("a decision")
			}
			q.granted = int32(len(after.Status.Conditions)) < *rs.Spec.Replicas && !hasSeat(after, q.who) //nolint:gosec // they are few
			if q.granted {
				after.Status.Conditions = append(after.Status.Conditions, appsv1.ReplicaSetCondition{Type: appsv1.ReplicaSetConditionType(q.who), Status: "True"})
				d.After = after
			}
		}
		return d, nil
	}
}

// freed returns the object without one who has a seat.
func freed(rs *appsv1.ReplicaSet, who string) *appsv1.ReplicaSet {
	after := rs.DeepCopy()
	after.Status.Conditions = slices.DeleteFunc(after.Status.Conditions, func(c appsv1.ReplicaSetCondition) bool { return string(c.Type) == who })
	return after
}

func hasSeat(rs *appsv1.ReplicaSet, who string) bool {
	return len(freed(rs, who).Status.Conditions) < len(rs.Status.Conditions)
}

// server has one object and counts the writes of its status.
type server struct {
	client.WithWatch
	writes atomic.Int32
	before func(n int32, body string) error // the refusal of the n-th write
	lost   func(n int32) error              // its answer, after it was done
}

var object = types.NamespacedName{Namespace: "shop", Name: "web"}

func newServer(t *testing.T, limit int32) *server {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, appsv1.AddToScheme(scheme))
	rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: object.Namespace, Name: object.Name, UID: "web"}}
	rs.Spec.Replicas = &limit
	s := &server{}
	s.WithWatch = fake.NewClientBuilder().WithScheme(scheme).WithObjects(rs).WithStatusSubresource(rs).WithInterceptorFuncs(interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			n := s.writes.Add(1)
			if body, err := p.Data(o); s.before != nil {
				if err := errors.Join(err, s.before(n, string(body))); err != nil {
					return err
				}
			}
			if err := c.SubResource(sub).Patch(ctx, o, p, opts...); err != nil {
				return err
			}
			if s.lost != nil {
				return s.lost(n)
			}
			return nil
		},
	}).Build()
	return s
}

func (s *server) get(t *testing.T) *appsv1.ReplicaSet {
	t.Helper()
	rs := &appsv1.ReplicaSet{}
	require.NoError(t, s.Get(t.Context(), object, rs))
	return rs
}
