package install_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/install"
	"github.com/flotilla-project/flotilla/kustomize/test/clitest"
)

// as returns a client of an account in the operators' namespace.
func as(t *testing.T, account string) *kubernetes.Clientset {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", clitest.Administrator)
	require.NoError(t, err)
	if account != "" {
		config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + install.Namespace + ":" + account}
	}
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return client
}

// token returns a Secret that asks for a token of an account.
func token(name, account string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{corev1.ServiceAccountNameKey: account}},
		Type:       corev1.SecretTypeServiceAccountToken,
	}
}

// A manager may create Secrets. None of them gives it the token of another manager, which may read the Secrets of all namespaces.
func TestManagersMakeNoTokensOfOtherAccounts(t *testing.T) {
	clitest.NeedsServer(t)
	output, code := call(t, clitest.Administrator, "install", "budget", "--wait=false")
	require.Equal(t, cli.Done, code, output)
	t.Cleanup(func() { remove(t, "budget") })
	mine, admins := as(t, "budget-manager").CoreV1().Secrets(install.Namespace), as(t, "").CoreV1().Secrets(install.Namespace)
	clean := func(name string) { t.Cleanup(func() { _ = admins.Delete(t.Context(), name, metav1.DeleteOptions{}) }) }

	const refusal = "a Secret with a token of ServiceAccount jobs-manager needs permission to create serviceaccounts/token of this account"
	var err error
	require.Eventually(t, func() bool {
		_, err = mine.Create(t.Context(), token("stolen", "jobs-manager"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return apierrors.IsForbidden(err)
	}, 2*time.Minute, 100*time.Millisecond)
	require.ErrorContains(t, err, refusal)
	_, err = mine.Create(t.Context(), token("stolen", "budget-manager"), metav1.CreateOptions{})
	require.True(t, apierrors.IsForbidden(err), "a token of its own that outlives its pod: %v", err)

	certificates := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "budget-webhook-certs"}}
	created, err := mine.Create(t.Context(), certificates, metav1.CreateOptions{})
	require.NoError(t, err, "the Secret that managers are to create")
	clean(certificates.Name)
	created.Data = map[string][]byte{"tls.crt": []byte("certificate")}
	_, err = mine.Update(t.Context(), created, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.NoError(t, admins.Delete(t.Context(), certificates.Name, metav1.DeleteOptions{}))

	// The one Secret that the manager may update, made as a token by somebody who may.
	made, err := admins.Create(t.Context(), token(certificates.Name, "budget-manager"), metav1.CreateOptions{})
	require.NoError(t, err, "an administrator may create tokens by a TokenRequest, too")
	made.Annotations[corev1.ServiceAccountNameKey] = "jobs-manager"
	_, err = mine.Update(t.Context(), made, metav1.UpdateOptions{})
	require.ErrorContains(t, err, refusal)
	_, err = admins.Update(t.Context(), made, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
	require.NoError(t, err)
}

// Who may write Secrets in the operators' namespace, and no more, gets no token either; who only labels one is let pass.
func TestTokensNeedThePermissionToCreateThem(t *testing.T) {
	clitest.NeedsServer(t)
	output, code := call(t, clitest.Administrator, "install", "budget", "--wait=false")
	require.Equal(t, cli.Done, code, output)
	t.Cleanup(func() { remove(t, "budget") })
	admin := as(t, "")
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "secret-writers"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create", "update"}},
	}}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "writer"}},
	}
	_, err := admin.RbacV1().Roles(install.Namespace).Create(t.Context(), role, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = admin.RbacV1().RoleBindings(install.Namespace).Create(t.Context(), binding, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, admin.RbacV1().RoleBindings(install.Namespace).Delete(context.Background(), binding.Name, metav1.DeleteOptions{}))
		require.NoError(t, admin.RbacV1().Roles(install.Namespace).Delete(context.Background(), role.Name, metav1.DeleteOptions{}))
	})
	config, err := clientcmd.BuildConfigFromFlags("", clitest.Administrator)
	require.NoError(t, err)
	config.Impersonate = rest.ImpersonationConfig{UserName: "writer"}
	writer, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)

	require.Eventually(t, func() bool {
		_, err = writer.CoreV1().Secrets(install.Namespace).Create(t.Context(), token("stolen", "budget-manager"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), "needs permission to create serviceaccounts/token of this account")
	}, 2*time.Minute, 100*time.Millisecond)
	made, err := admin.CoreV1().Secrets(install.Namespace).Create(t.Context(), token("made", "budget-manager"), metav1.CreateOptions{})
	require.NoError(t, err)
	made.Labels = map[string]string{"kubernetes.io/legacy-token-last-used": "2026-01-01"}
	_, err = writer.CoreV1().Secrets(install.Namespace).Update(t.Context(), made, metav1.UpdateOptions{})
	assert.NoError(t, err)
	assert.NoError(t, admin.CoreV1().Secrets(install.Namespace).Delete(t.Context(), made.Name, metav1.DeleteOptions{}))
}
