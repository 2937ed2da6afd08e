package testenv_test

import (
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const roles = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {namespace: %[1]s, name: reader}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [list]}
- {apiGroups: [""], resources: [pods/log], resourceNames: [web], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {namespace: %[1]s, name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects:
- {kind: ServiceAccount, namespace: %[1]s, name: reader}
`

func TestInstalledRolesAreInForce(t *testing.T) {
	ns := env.Namespace(t)
	user := "system:serviceaccount:" + ns + ":reader"
	reader, err := client.New(env.User(t, user), client.Options{Scheme: env.Scheme})
	require.NoError(t, err)
	list := func() error { return reader.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(ns)) }
	require.True(t, apierrors.IsForbidden(list()))
	lists := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}}
	for range 50 {
		env.Install(t, fstest.MapFS{"roles.yaml": {Data: fmt.Appendf(nil, roles, ns)}}, "roles.yaml")
		require.NoError(t, list())
		require.NoError(t, env.Client(t).Delete(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "reader"}}))
		env.AwaitLoss(t, user, ns, lists)
		require.True(t, apierrors.IsForbidden(list()))
	}
}
