package setup

import (
	"io/fs"
	"regexp"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/testenv/operators"

	daemon "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/config"
	cronplan "github.com/flotilla-project/flotilla/jobs/internal/advancedcronjob/plan"
	pullplan "github.com/flotilla-project/flotilla/jobs/internal/imagepulljob/plan"
)

// roles grant the operator what it may do by default.
var roles = []string{"rbac/manager_role.yaml", "rbac/cluster_role.yaml", "rbac/namespace_role.yaml", "pullsecrets/role.yaml"}

// granting returns the roles without the rules for the resources.
func granting(t *testing.T, but ...string) fs.FS {
	t.Helper()
	files := fstest.MapFS{}
	for _, name := range roles {
		text, err := fs.ReadFile(config.Files, name)
		require.NoError(t, err)
		files[name] = &fstest.MapFile{Data: text}
	}
	for _, resource := range but {
		rule := regexp.MustCompile(`(?m)^- apiGroups: .*\n  resources: \[` + resource + `\]\n  verbs: .*\n`)
		found := false
		for _, file := range files {
			left := rule.ReplaceAll(file.Data, nil)
			found, file.Data = found || len(left) < len(file.Data), left
		}
		require.True(t, found, "no rule is for %s alone", resource)
	}
	return files
}

// What the operator may not read when it starts holds up the kinds that need it, which say so, and no other. They begin
// when the permission is granted, without a restart.
func TestAKindThatMayNotBeReadHoldsUpNoOther(t *testing.T) {
	env.Need(t)
	c := env.Client(t)
	operators.Granted{Env: &env, Operator: Operator(), Files: granting(t, "jobs", "nodeimages"), Roles: roles}.Start(t)
	namespace := env.Namespace(t)
	node := &daemon.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "reads-" + namespace}}
	require.NoError(t, c.Create(t.Context(), node))
	givenEligibleNode(t, c, node.Name, nil)
	cron, broadcast := givenCron(t, c, namespace, "cron"), givenBroadcast(t, c, namespace, "broadcast")
	pull := givenPull(t, c, namespace, node, "reads:1")
	await.Until(t, func(check *assert.CollectT) {
		var pods corev1.PodList
		require.NoError(check, c.List(t.Context(), &pods, client.InNamespace(namespace), client.MatchingLabels{v1beta1.BroadcastJobNameLabel: broadcast.Name}))
		assert.NotEmpty(check, pods.Items)
		require.NoError(check, c.Get(t.Context(), client.ObjectKeyFromObject(cron), cron))
		scheduling := meta.FindStatusCondition(cron.Status.Conditions, v1beta1.CronJobScheduling)
		require.NotNil(check, scheduling)
		assert.Equal(check, cronplan.ReasonForbidden, scheduling.Reason)
		assert.Contains(check, reasonsOf(t, check, c, cron), cronplan.EventForbidden)
		require.NoError(check, c.Get(t.Context(), client.ObjectKeyFromObject(pull), pull))
		assert.Equal(check, pullplan.MessageForbidden, pull.Status.Message)
		assert.Contains(check, reasonsOf(t, check, c, pull), pullplan.EventForbidden)
	})

	env.Install(t, config.Files, roles...)
	isPulled(t, c, node, "reads")
	await.Until(t, func(check *assert.CollectT) {
		require.NoError(check, c.Get(t.Context(), client.ObjectKeyFromObject(cron), cron))
		assert.NotNil(check, cron.Status.LastScheduleTime)
	})
	require.NoError(t, c.Delete(t.Context(), cron))
}
