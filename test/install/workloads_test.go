package install

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// The programs of a feature, and its names.

// program is a program of the feature, its manager or its agent.
type program struct {
	name string
	pod  corev1.PodTemplateSpec
}

// programs returns the programs of the overlay, the manager first.
func (f feature) programs(t *testing.T) []program {
	t.Helper()
	manager := one[appsv1.Deployment](t, f.extended, "Deployment")
	all := []program{{manager.Name, manager.Spec.Template}}
	for _, agent := range of[appsv1.DaemonSet](t, f.extended, "DaemonSet") {
		all = append(all, program{agent.Name, agent.Spec.Template})
	}
	return all
}

// Names are a contract: the operator finds its Lease, its Secret and its configurations by them.
func TestNamesAreThoseOfTheFeature(t *testing.T) {
	for _, f := range features(t) {
		t.Run(f.name, func(t *testing.T) {
			manager, config := f.name+"-manager", f.extended
			assert.Equal(t, manager, one[appsv1.Deployment](t, config, "Deployment").Name)
			assert.Equal(t, f.name+"-webhook", one[corev1.Service](t, config, "Service").Name)
			mutating := f.name + "-mutating"
			if f.name == "spread" { // called before daemon-mutating: API servers go by the names
				mutating = "10-spread-mutating"
			}
			assert.Equal(t, mutating, one[admissionregistrationv1.MutatingWebhookConfiguration](t, config, "MutatingWebhookConfiguration").Name)
			assert.Equal(t, f.name+"-validating", one[admissionregistrationv1.ValidatingWebhookConfiguration](t, config, "ValidatingWebhookConfiguration").Name)
			var accounts []string
			for _, account := range of[corev1.ServiceAccount](t, config, "ServiceAccount") {
				accounts = append(accounts, account.Name)
			}
			for _, p := range f.programs(t) {
				assert.Contains(t, []string{manager, f.name + "-agent"}, p.name)
				assert.Equal(t, p.name, p.pod.Spec.ServiceAccountName)
				assert.Contains(t, accounts, p.name)
				for _, c := range p.pod.Spec.Containers {
					assert.Regexp(t, "^flotilla/"+p.name+":v[0-9]", c.Image)
				}
			}
			named := map[string][]string{}
			for _, role := range of[rbacv1.Role](t, config, "Role") {
				for _, rule := range role.Rules {
					for _, resource := range rule.Resources {
						named[resource] = append(named[resource], rule.ResourceNames...)
					}
				}
			}
			if f.name == "spread" {
				assert.Equal(t, []string{"kruise-configuration"}, named["configmaps"], "the name that OpenKruise's users know")
				delete(named, "configmaps")
			}
			assert.Equal(t, map[string][]string{"leases": {manager}, "secrets": {f.name + "-webhook-certs"}}, named)
		})
	}
}

// The webhooks' Service selects the manager's pods.
func TestTheServiceLeadsToTheManager(t *testing.T) {
	for _, f := range features(t) {
		t.Run(f.name, func(t *testing.T) {
			service, manager := one[corev1.Service](t, f.overlay, "Service"), one[appsv1.Deployment](t, f.overlay, "Deployment")
			require.NotEmpty(t, service.Spec.Selector)
			assert.Subset(t, manager.Spec.Template.Labels, service.Spec.Selector)
			for _, p := range f.programs(t)[1:] {
				assert.NotSubset(t, p.pod.Labels, service.Spec.Selector, p.name)
			}
			require.Len(t, service.Spec.Ports, 1)
			var ports []string
			for _, port := range manager.Spec.Template.Spec.Containers[0].Ports {
				ports = append(ports, port.Name)
			}
			assert.Contains(t, ports, service.Spec.Ports[0].TargetPort.String())
		})
	}
}

// Every object has the labels of its feature, except namespaces, which may already exist. Pods have those that do not change
// with whoever installs them, so that a change of these alone restarts nothing.
func TestObjectsAreLabelled(t *testing.T) {
	const by, version = "app.kubernetes.io/managed-by", "app.kubernetes.io/version"
	belongs := func(t *testing.T, name string, labels map[string]string) {
		t.Helper()
		assert.Equal(t, "flotilla", labels["app.kubernetes.io/part-of"], name)
	}
	for _, f := range features(t) {
		t.Run(f.name, func(t *testing.T) {
			for _, o := range f.overlay {
				if strings.HasPrefix(o.GetName(), "flotilla-") {
					belongs(t, o.GetKind()+" "+o.GetName(), o.GetLabels())
					continue // of the base, which all features share
				}
				if o.GetKind() != "Namespace" {
					belongs(t, o.GetKind()+" "+o.GetName(), o.GetLabels())
					assert.Equal(t, "kustomize", o.GetLabels()[by], o.GetName())
					assert.Regexp(t, "^v[0-9]", o.GetLabels()[version], o.GetName())
				}
			}
			for _, p := range f.programs(t) {
				belongs(t, p.name, p.pod.Labels)
				assert.NotContains(t, p.pod.Labels, by, p.name)
				assert.NotContains(t, p.pod.Labels, version, p.name)
				assert.Equal(t, p.name, p.pod.Labels["app.kubernetes.io/name"])
				assert.Equal(t, p.name, f.name+"-"+p.pod.Labels["app.kubernetes.io/component"])
			}
		})
	}
}

// 68: the limits were too small for large clusters, and a throttled operator answers webhooks late.
func TestNoProgramIsThrottled(t *testing.T) {
	for _, f := range features(t) {
		t.Run(f.name, func(t *testing.T) {
			for _, p := range f.programs(t) {
				for _, c := range p.pod.Spec.Containers {
					assert.NotContains(t, c.Resources.Limits, corev1.ResourceCPU, p.name)
					assert.Contains(t, c.Resources.Requests, corev1.ResourceCPU, p.name)
					assert.Contains(t, c.Resources.Requests, corev1.ResourceMemory, p.name)
				}
			}
		})
	}
}

// A program that hangs is restarted, and one that is not ready receives no requests. No other pod displaces it.
func TestProgramsAreLookedAfter(t *testing.T) {
	for _, f := range features(t) {
		t.Run(f.name, func(t *testing.T) {
			for _, p := range f.programs(t) {
				assert.Contains(t, []string{"system-cluster-critical", "system-node-critical"}, p.pod.Spec.PriorityClassName, p.name)
				for _, c := range p.pod.Spec.Containers {
					for path, probe := range map[string]*corev1.Probe{"/healthz": c.LivenessProbe, "/readyz": c.ReadinessProbe} {
						require.NotNil(t, probe, "%s: %s", p.name, path)
						require.NotNil(t, probe.HTTPGet, "%s: %s", p.name, path)
						assert.Equal(t, path, probe.HTTPGet.Path, p.name)
						assert.GreaterOrEqual(t, probe.TimeoutSeconds, int32(10), "%s: %s on a node that is short of cpu", p.name, path)
					}
				}
			}
		})
	}
}

// Some clusters admit pods of the critical classes only where a quota is for them.
func TestAQuotaAdmitsTheProgramsOfCriticalClasses(t *testing.T) {
	for _, f := range features(t) {
		t.Run(f.name, func(t *testing.T) {
			quota := one[corev1.ResourceQuota](t, f.overlay, "ResourceQuota")
			assert.Equal(t, Namespace, quota.Namespace)
			require.NotNil(t, quota.Spec.ScopeSelector)
			require.Len(t, quota.Spec.ScopeSelector.MatchExpressions, 1)
			scope := quota.Spec.ScopeSelector.MatchExpressions[0]
			assert.Equal(t, corev1.ResourceQuotaScopePriorityClass, scope.ScopeName)
			assert.Equal(t, corev1.ScopeSelectorOpIn, scope.Operator)
			for _, p := range f.programs(t) {
				assert.Contains(t, scope.Values, p.pod.Spec.PriorityClassName, p.name)
			}
			assert.Greater(t, quota.Spec.Hard.Pods().Value(), int64(1_000_000), "a quota that is reached stops the agents of new nodes")
		})
	}
}

// The namespace admits privileged pods because of the node agent. The managers still meet the restricted pod security
// standard.
func TestManagersRestrictThemselves(t *testing.T) {
	for _, f := range features(t) {
		t.Run(f.name, func(t *testing.T) {
			pod := one[appsv1.Deployment](t, f.extended, "Deployment").Spec.Template.Spec
			assert.False(t, pod.HostNetwork || pod.HostPID || pod.HostIPC)
			assert.Empty(t, pod.Volumes)
			assert.Empty(t, pod.InitContainers)
			assert.Empty(t, pod.EphemeralContainers)
			require.NotNil(t, pod.SecurityContext)
			assert.Equal(t, new(true), pod.SecurityContext.RunAsNonRoot)
			assert.Equal(t, &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}, pod.SecurityContext.SeccompProfile)
			for _, c := range pod.Containers {
				assert.Equal(t, &corev1.SecurityContext{
					AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				}, c.SecurityContext, c.Name)
				for _, port := range c.Ports {
					assert.Zero(t, port.HostPort, c.Name)
				}
			}
		})
	}
}

// A feature has roles for users of its kinds, and one for Prometheus.
func TestPeopleHaveRoles(t *testing.T) {
	for _, f := range features(t) {
		t.Run(f.name, func(t *testing.T) {
			readers := map[string]bool{}
			metrics := false
			for _, role := range of[rbacv1.ClusterRole](t, f.overlay, "ClusterRole") {
				if role.Name == f.name+"-metrics-reader" {
					metrics = true
					assert.Equal(t, []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}}, role.Rules)
				}
				for _, rule := range role.Rules {
					for _, resource := range rule.Resources {
						readers[resource] = readers[resource] || role.Name != f.name+"-manager" && assert.ObjectsAreEqual([]string{"get", "list", "watch"}, rule.Verbs)
					}
				}
			}
			assert.True(t, metrics, "nobody may read metrics")
			for _, kind := range f.ownKinds(t) {
				assert.True(t, readers[kind], "nobody may view %s", kind)
			}
		})
	}
}
