package story

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flotilla-project/flotilla/kustomize/release/overlays"

	"github.com/flotilla-project/flotilla/test/audit"
	"github.com/flotilla-project/flotilla/test/install"
)

// permissions is a set of "verb resource.group", such as "patch clonesets.apps.kruise.io/status".
type permissions map[string]bool

func permission(verb, group, resource string) string {
	name, subresource, has := strings.Cut(resource, "/")
	if group != "" {
		name += "." + group
	}
	if has {
		name += "/" + subresource
	}
	return verb + " " + name
}

// wholeSuite reports whether all stories of the suite have run.
func wholeSuite() bool {
	for _, name := range []string{"test.run", "test.skip"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() != "" {
			return false
		}
	}
	return true
}

// unneeded compares the permissions of the suite's operators with their requests in the cluster's audit log since its
// start. It returns the permissions that they have needed and lack since the suite's stories began, as those of suites before
// may have granted them more, and those that they have and never needed.
func (w World) unneeded() ([]string, error) {
	granted, err := w.granted()
	if err != nil {
		return nil, err
	}
	requests, err := (&audit.Log{Path: w.Cluster.AuditLog()}).Read(func(r audit.Request) bool {
		return r.Object.Resource != "" && granted[account(r)] != nil
	})
	if err != nil {
		return nil, err
	}
	used, needed := map[string]permissions{}, map[string]permissions{}
	for _, r := range requests {
		name := account(r)
		p := permission(r.Verb, r.Object.Group, r.Resource())
		if used[name] == nil {
			used[name], needed[name] = permissions{}, permissions{}
		}
		used[name][p] = true
		if r.Received.After(w.began) {
			needed[name][p] = true
		}
	}
	wrong := ungranted(granted, w.suite.Spare)
	for _, name := range slices.Sorted(maps.Keys(granted)) {
		for _, w := range compare(granted[name], used[name], needed[name], w.suite.Spare) {
			wrong = append(wrong, name+": "+w)
		}
	}
	return wrong, nil
}

// granted returns what the accounts of the suite's features have, by the manifests of these features and by those that
// stories apply.
func (w World) granted() (map[string]permissions, error) {
	granted, installed := map[string]permissions{}, map[string]bool{}
	for _, feature := range w.suite.Features {
		manifests, err := overlays.Manifests("", feature, nil)
		if err != nil {
			return nil, err
		}
		objects, err := overlays.Objects(manifests)
		if err != nil {
			return nil, err
		}
		if err := grants(objects, granted); err != nil {
			return nil, fmt.Errorf("read the roles of %s: %w", feature, err)
		}
		addAccounts(objects, installed)
	}
	maps.DeleteFunc(granted, func(account string, _ permissions) bool { return !installed[account] })
	for _, file := range w.suite.Roles {
		manifests, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read the roles of stories: %w", err)
		}
		objects, err := overlays.Objects(manifests)
		if err != nil {
			return nil, err
		}
		if err := grants(objects, granted); err != nil {
			return nil, fmt.Errorf("read the roles in %s: %w", file, err)
		}
	}
	return granted, nil
}

// account returns the operator's account that made the request, or an empty string for other clients.
func account(r audit.Request) string {
	name, ok := strings.CutPrefix(r.User.Name, "system:serviceaccount:"+install.Namespace+":")
	if !ok {
		return ""
	}
	return name
}

// addAccounts adds the accounts among the objects. A feature may also grant something to the account of one that is not
// installed.
func addAccounts(objects []unstructured.Unstructured, to map[string]bool) {
	for i := range objects {
		if objects[i].GetKind() == "ServiceAccount" {
			to[objects[i].GetName()] = true
		}
	}
}

// grants adds what the objects' roles grant to each account.
func grants(objects []unstructured.Unstructured, to map[string]permissions) error {
	rules := map[string][]rbacv1.PolicyRule{}
	var bindings []rbacv1.RoleBinding
	for i := range objects {
		o := &objects[i]
		switch o.GetKind() {
		case "Role", "ClusterRole":
			var role rbacv1.ClusterRole
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
				return err
			}
			rules[o.GetKind()+" "+o.GetName()] = role.Rules
		case "RoleBinding", "ClusterRoleBinding":
			var binding rbacv1.RoleBinding
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &binding); err != nil {
				return err
			}
			bindings = append(bindings, binding)
		}
	}
	for _, binding := range bindings {
		for _, subject := range binding.Subjects {
			if to[subject.Name] == nil {
				to[subject.Name] = permissions{}
			}
			to[subject.Name].add(rules[binding.RoleRef.Kind+" "+binding.RoleRef.Name])
		}
	}
	return nil
}

func (p permissions) add(rules []rbacv1.PolicyRule) {
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					p[permission(verb, group, resource)] = true
				}
			}
		}
	}
}

// compare returns which granted permissions were never used, and which needed ones are not granted. Spare permissions are
// granted for a reason that no story shows.
func compare(granted, used, needed permissions, spare map[string]string) []string {
	var wrong []string
	for _, p := range slices.Sorted(maps.Keys(granted)) {
		if !used[p] && spare[p] == "" {
			wrong = append(wrong, p+" is granted, and nothing needs it")
		}
	}
	for _, p := range slices.Sorted(maps.Keys(needed)) {
		if !granted[p] {
			wrong = append(wrong, p+" is needed, and not granted")
		}
	}
	return wrong
}

// ungranted returns the spare permissions that no account has.
func ungranted(granted map[string]permissions, spare map[string]string) []string {
	var wrong []string
	for _, p := range slices.Sorted(maps.Keys(spare)) {
		if !slices.ContainsFunc(slices.Collect(maps.Values(granted)), func(of permissions) bool { return of[p] }) {
			wrong = append(wrong, "nobody: "+p+" is listed as spare, and not granted")
		}
	}
	return wrong
}
