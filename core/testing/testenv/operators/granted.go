package operators

import (
	"io/fs"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/operator/manager"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
)

// namespace is the namespace of operators in the shipped manifests.
const namespace = "flotilla-system"

// Granted is an operator that has only the rights in its shipped manifests.
type Granted struct {
	// Env is the environment, with the CRDs.
	Env *testenv.Environment
	// Operator is the operator.
	Operator manager.Operator
	// Files have the manifests, and Roles are patterns of those with the rights.
	Files fs.FS
	Roles []string
	// Flags are those of the operator.
	Flags []string
}

// Start runs the operator until the end of the test. The function it returns asserts that no request of the operator
// was forbidden so far.
func (g Granted) Start(t testing.TB) (assertAllowed func()) {
	t.Helper()
	g.Env.Need(t)
	audit := g.Env.Audit(t)
	name := g.Operator.Feature + "-manager"
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	g.Env.Share(t, system)
	g.Env.Install(t, g.Files, g.Roles...)
	as := *g.Env
	as.Config = g.Env.User(t, "system:serviceaccount:"+namespace+":"+name)
	Start(t, &as, g.Operator, append([]string{"--leader-election-namespace=" + namespace}, g.Flags...)...)
	return func() {
		t.Helper()
		for _, request := range audit.Requests(t, name) {
			assert.NotEqual(t, http.StatusForbidden, request.Response.Code, request.String())
		}
	}
}
