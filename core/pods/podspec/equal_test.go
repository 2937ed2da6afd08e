package podspec

import (
	_ "embed"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

func template(t *testing.T, text string) *corev1.PodTemplateSpec {
	t.Helper()
	var parsed corev1.PodTemplateSpec
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), &parsed))
	return &parsed
}

func text(t *testing.T, template *corev1.PodTemplateSpec) string {
	t.Helper()
	printed, err := yaml.Marshal(template)
	require.NoError(t, err)
	return string(printed)
}

// written is a template with all that has a default, served the same as the API server stores it
// for a DaemonSet, with the host ports that it gives to pods.
//
//go:embed testdata/written.yaml
var written string

const served = `
metadata: {labels: {app: web}, creationTimestamp: null}
spec:
  dnsPolicy: ClusterFirst
  restartPolicy: Always
  schedulerName: default-scheduler
  securityContext: {}
  terminationGracePeriodSeconds: 30
  serviceAccountName: web
  serviceAccount: web
  hostNetwork: true
  overhead: {cpu: 1m}
  resources: {limits: {cpu: "1"}}
  initContainers:
  - name: init
    image: "registry:5000/init"
    imagePullPolicy: Always
    terminationMessagePath: /dev/termination-log
    terminationMessagePolicy: File
    resources: {}
  - name: sidecar
    image: "proxy:1@sha256:abc"
    imagePullPolicy: IfNotPresent
    terminationMessagePath: /dev/termination-log
    terminationMessagePolicy: File
    ports: [{containerPort: 81, hostPort: 81, protocol: TCP}]
  containers:
  - name: main
    image: app:1
    imagePullPolicy: PULL
    terminationMessagePath: /dev/termination-log
    terminationMessagePolicy: File
    ports: [{containerPort: 80, hostPort: 80, protocol: TCP}]
    env:
    - {name: POD, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: metadata.name}}}
    - {name: FILE, valueFrom: {fileKeyRef: {volumeName: empty, path: p, key: k, optional: false}}}
    resources: {limits: {cpu: 500m, memory: 1Gi}, requests: {cpu: 1m}}
    livenessProbe: {httpGet: {port: 80, path: /, scheme: HTTP}, timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3}
    readinessProbe: {grpc: {port: 81, service: ""}, timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3}
    startupProbe: {exec: {command: [ok]}, timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3}
    lifecycle:
      postStart: {exec: {command: [ok]}}
      preStop: {httpGet: {port: 80, path: /, scheme: HTTP}}
  volumes:
  - {name: empty, emptyDir: {}}
  - {name: host, hostPath: {path: /x, type: ""}}
  - {name: secret, secret: {secretName: s, defaultMode: 420}}
  - {name: config, configMap: {name: c, defaultMode: 420}}
  - {name: downward, downwardAPI: {defaultMode: 420, items: [{path: p, fieldRef: {apiVersion: v1, fieldPath: metadata.name}}]}}
  - name: projected
    projected:
      defaultMode: 420
      sources:
      - serviceAccountToken: {path: t, expirationSeconds: 3600}
      - downwardAPI: {items: [{path: p, fieldRef: {apiVersion: v1, fieldPath: metadata.uid}}]}
  - {name: ephemeral, ephemeral: {volumeClaimTemplate: {metadata: {creationTimestamp: null}, spec: {accessModes: [ReadWriteOnce], volumeMode: Filesystem, resources: {requests: {storage: 1Gi}}}}}}
  - {name: image, image: {reference: "data:1", pullPolicy: IfNotPresent}}
  - {name: iscsi, iscsi: {targetPortal: t, iqn: iqn.2030-01.org.example:i, lun: 1, iscsiInterface: default}}
  - {name: rbd, rbd: {monitors: [m], image: i, pool: rbd, user: admin, keyring: /etc/ceph/keyring}}
  - {name: azure, azureDisk: {diskName: d, diskURI: "https://a.blob.core.windows.net/c/d.vhd", cachingMode: ReadWrite, kind: Shared, fsType: ext4, readOnly: false}}
  - {name: scale, scaleIO: {gateway: g, system: s, secretRef: {name: s}, volumeName: v, storageMode: ThinProvisioned, fsType: xfs}}
`

func TestDefaultedTemplatesAreEqual(t *testing.T) {
	cases := []struct {
		read, other DefaultPullPolicy
		policy      string
	}{{PullAlways, ServerDefault, "Always"}, {ServerDefault, PullAlways, "IfNotPresent"}}
	for _, c := range cases {
		a, b := template(t, written), template(t, strings.Replace(served, "PULL", c.policy, 1))
		assert.Equal(t, text(t, normalized(b, c.read)), text(t, normalized(a, c.read)), "shows the difference")
		assert.True(t, Equal(a, b, c.read))
		assert.True(t, Equal(b, a, c.read))
		assert.Equal(t, template(t, written), a, "an argument was changed")
		assert.False(t, Equal(a, b, c.other), "the reading of an absent imagePullPolicy decides")
	}
}

func TestDefaultingTwiceChangesNothing(t *testing.T) {
	once := normalized(template(t, written), ServerDefault)
	assert.Equal(t, text(t, once), text(t, normalized(once, ServerDefault)))
}

func TestEqual(t *testing.T) {
	with := func(change func(t *corev1.PodTemplateSpec)) *corev1.PodTemplateSpec {
		changed := template(t, written)
		change(changed)
		return changed
	}
	cases := []struct {
		name string
		with *corev1.PodTemplateSpec
		want bool
	}{
		{"itself", template(t, written), true},
		{"a time of creation", with(func(t *corev1.PodTemplateSpec) { t.CreationTimestamp = metav1.Now() }), true},
		{"empty instead of absent", with(func(t *corev1.PodTemplateSpec) {
			t.Annotations, t.Spec.Tolerations = map[string]string{}, []corev1.Toleration{}
		}), true},
		{"the deprecated service account alone", with(func(t *corev1.PodTemplateSpec) {
			t.Spec.DeprecatedServiceAccount, t.Spec.ServiceAccountName = t.Spec.ServiceAccountName, ""
		}), true},
		{"an annotation", with(func(t *corev1.PodTemplateSpec) { t.Annotations = map[string]string{"a": "b"} }), false},
		{"an image", with(func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = "app:2" }), false},
		{"a pull policy", with(func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].ImagePullPolicy = corev1.PullNever }), false},
		{"a host port of its own", with(func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Ports[0].HostPort = 8080 }), false},
		{"a probe", with(func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].LivenessProbe.PeriodSeconds = 5 }), false},
		{"a volume's mode", with(func(t *corev1.PodTemplateSpec) { mode := int32(0o600); t.Spec.Volumes[2].Secret.DefaultMode = &mode }), false},
		{"a grace period", with(func(t *corev1.PodTemplateSpec) { zero := int64(0); t.Spec.TerminationGracePeriodSeconds = &zero }), false},
		{"the order of containers", with(func(t *corev1.PodTemplateSpec) {
			c := t.Spec.InitContainers
			c[0], c[1] = c[1], c[0]
		}), false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.want, Equal(template(t, written), c.with, PullAlways))
		})
	}
}

func TestHostPortsAreFreeWithoutHostNetwork(t *testing.T) {
	free := template(t, `spec: {containers: [{name: main, image: "app:1", ports: [{containerPort: 80}]}]}`)
	bound := template(t, `spec: {containers: [{name: main, image: "app:1", ports: [{containerPort: 80, hostPort: 80}]}]}`)
	assert.False(t, Equal(free, bound, PullAlways))
}

func TestPullPolicyByTag(t *testing.T) {
	for image, want := range map[string]corev1.PullPolicy{
		"app":                      corev1.PullAlways,
		"app:latest":               corev1.PullAlways,
		"app:1":                    corev1.PullIfNotPresent,
		"registry:5000/app":        corev1.PullAlways,
		"registry:5000/app:1":      corev1.PullIfNotPresent,
		"registry/app@sha256:abc":  corev1.PullIfNotPresent,
		"app:latest@sha256:abc":    corev1.PullAlways,
		"registry:5000/team/app:1": corev1.PullIfNotPresent,
	} {
		assert.Equal(t, want, pullPolicyByTag(image), image)
	}
}

func TestAlwaysPullKeepsWhatIsSaid(t *testing.T) {
	spec := template(t, `spec: {initContainers: [{name: i}], containers: [{name: a}, {name: b, imagePullPolicy: Never}]}`).Spec
	DefaultToPullAlways(&spec)
	assert.Equal(t, corev1.PullAlways, spec.Containers[0].ImagePullPolicy)
	assert.Equal(t, corev1.PullNever, spec.Containers[1].ImagePullPolicy)
	assert.Empty(t, spec.InitContainers[0].ImagePullPolicy)
}
