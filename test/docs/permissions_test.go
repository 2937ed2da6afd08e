package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// written are the resources that an account can create or delete, and those that it can change alone.
type written struct{ made, changed []string }

// ofAll are the resources that the page names for all accounts.
var ofAll = regexp.MustCompile(`^(events|podtemplates|(token|subjectaccess|selfsubjectaccess)reviews)$`)

// writes returns the resources that the rules permit to write, apart from those that the page names for all accounts.
func writes(roles ...rbacv1.ClusterRole) (all written) {
	verbs := map[string][]string{}
	for _, role := range roles {
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				own := strings.Contains(rule.APIGroups[0], ".kruise.io") && strings.Contains(resource, "/")
				if len(rule.ResourceNames) > 0 || own || ofAll.MatchString(resource) {
					continue
				}
				verbs[resource] = append(verbs[resource], rule.Verbs...)
			}
		}
	}
	has := func(resource string, any ...string) bool {
		return slices.ContainsFunc(verbs[resource], func(verb string) bool { return slices.Contains(append(any, "*"), verb) })
	}
	for resource := range verbs {
		switch {
		case has(resource, "create", "delete", "deletecollection"):
			all.made = append(all.made, resource)
		case has(resource, "patch", "update"):
			all.changed = append(all.changed, resource)
		}
	}
	slices.Sort(all.made)
	slices.Sort(all.changed)
	return all
}

func TestWritesAreToldApart(t *testing.T) {
	role := rbacv1.ClusterRole{Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods", "nodes"}, Verbs: []string{"get", "patch"}},
		{APIGroups: []string{""}, Resources: []string{"pods", "events"}, Verbs: []string{"create"}},
		{APIGroups: []string{""}, Resources: []string{"pods/status", "secrets"}, Verbs: []string{"update"}},
		{APIGroups: []string{"apps.kruise.io"}, Resources: []string{"clonesets/status"}, Verbs: []string{"patch"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"delete"}, ResourceNames: []string{"own"}},
		{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"list"}},
	}}
	assert.Equal(t, written{made: []string{"pods"}, changed: []string{"nodes", "pods/status", "secrets"}}, writes(role))
}

// Who reviews the security of an operator reads the page, and not seven folders of roles.
func TestPermissionsAreThoseOfTheRoles(t *testing.T) {
	want := map[string]written{}
	for _, pattern := range []string{"rbac/manager_role.yaml", "rbac/agent_role.yaml", "*/role.yaml"} {
		files, err := filepath.Glob(filepath.Join(root, "*", "config", filepath.FromSlash(pattern)))
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, file := range files {
			roles := rolesOf(t, file)
			require.NotEmpty(t, roles, file)
			account, component, _ := strings.Cut(roles[0].Name, "-manager-")
			if component != "" {
				account += "-manager, " + strings.TrimSuffix(component, "-cluster")
			}
			if filepath.Base(file) == "manager_role.yaml" {
				roles = append(roles, rolesOf(t, filepath.Join(filepath.Dir(file), "cluster_role.yaml"))...)
			}
			if all := writes(roles...); len(all.made)+len(all.changed) > 0 {
				want[account] = all
			}
		}
	}
	quotes := regexp.MustCompile("`([^`]+)`")
	names := func(cell string) (all []string) {
		for _, found := range quotes.FindAllStringSubmatch(cell, -1) {
			all = append(all, found[1])
		}
		return all
	}
	_, table, found := strings.Cut(text(t, "docs/concepts/security.md"), "| creates or deletes | changes only |\n|---|---|---|\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	got := map[string]written{}
	for row := range strings.SplitSeq(table, "\n") {
		cells := strings.Split(row, "|")
		require.Len(t, cells, 5, row)
		all := written{names(cells[2]), names(cells[3])}
		slices.Sort(all.made)
		slices.Sort(all.changed)
		got[strings.Join(names(cells[1]), ", ")] = all
	}
	assert.Equal(t, want, got)
}

// rolesOf returns those of a file with several objects.
func rolesOf(t *testing.T, file string) (roles []rbacv1.ClusterRole) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for object := range strings.SplitSeq(string(text), "\n---\n") {
		var role rbacv1.ClusterRole
		require.NoError(t, yaml.Unmarshal([]byte(object), &role), file)
		if role.Kind == "ClusterRole" {
			roles = append(roles, role)
		}
	}
	return roles
}
