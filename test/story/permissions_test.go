package story

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/kustomize/release/overlays"
)

func TestPermissionsAreThoseThatAreUsed(t *testing.T) {
	granted := permissions{"get pods": true, "patch pods/status": true, "delete pods": true, "update sets.example.com/finalizers": true}
	used := permissions{"get pods": true, "patch pods/status": true, "list nodes": true}
	needed := permissions{"get pods": true, "list nodes": true}
	used["create jobs"] = true // by a suite before
	spare := map[string]string{"update sets.example.com/finalizers": "some clusters ask for it", "patch pods/status": "not in every run", "get nodes": "of old"}
	assert.Equal(t, []string{
		"delete pods is granted, and nothing needs it",
		"list nodes is needed, and not granted",
	}, compare(granted, used, needed, spare))
	assert.Equal(t, []string{"nobody: get nodes is listed as spare, and not granted"},
		ungranted(map[string]permissions{"one": {}, "two": granted}, spare))
}

func TestGrantsGoToTheAccountsThatRolesAreBoundTo(t *testing.T) {
	objects, err := overlays.Objects([]byte(`
apiVersion: v1
kind: ServiceAccount
metadata: {name: one, namespace: system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: manager}
rules:
- {apiGroups: [""], resources: [pods, pods/status], verbs: [get, patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: manager, namespace: system}
rules:
- {apiGroups: [example.com], resources: [sets/scale], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: view}
rules:
- {apiGroups: [""], resources: [secrets], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: manager}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: manager}
subjects: [{kind: ServiceAccount, name: one, namespace: system}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: manager, namespace: system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: manager}
subjects: [{kind: ServiceAccount, name: one, namespace: system}]
`))
	require.NoError(t, err)
	granted := map[string]permissions{}
	require.NoError(t, grants(objects, granted))
	assert.Equal(t, map[string]permissions{"one": {
		"get pods": true, "patch pods": true, "get pods/status": true, "patch pods/status": true, "get sets.example.com/scale": true,
	}}, granted)
	accounts := map[string]bool{}
	addAccounts(objects, accounts)
	assert.Equal(t, map[string]bool{"one": true}, accounts)
}
