package podspec

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Default sets in a pod spec the absent fields that the API server sets. It exists for comparison: stored templates are
// never defaulted. policy decides how a container without imagePullPolicy is read.
func Default(spec *corev1.PodSpec, policy DefaultPullPolicy) {
	setDefault(&spec.DNSPolicy, corev1.DNSClusterFirst)
	setDefault(&spec.RestartPolicy, corev1.RestartPolicyAlways)
	setDefault(&spec.SchedulerName, corev1.DefaultSchedulerName)
	setDefaultPointer(&spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
	setDefaultPointer(&spec.SecurityContext, corev1.PodSecurityContext{})
	setDefault(&spec.ServiceAccountName, spec.DeprecatedServiceAccount)
	spec.DeprecatedServiceAccount = spec.ServiceAccountName
	roundUp(spec.Overhead)
	if spec.Resources != nil {
		roundUp(spec.Resources.Limits)
		roundUp(spec.Resources.Requests)
	}
	if policy == PullAlways {
		DefaultToPullAlways(spec)
	}
	for i := range spec.InitContainers {
		defaultContainer(&spec.InitContainers[i], spec.HostNetwork)
	}
	for i := range spec.Containers {
		defaultContainer(&spec.Containers[i], spec.HostNetwork)
	}
	for i := range spec.Volumes {
		defaultVolume(&spec.Volumes[i].VolumeSource)
	}
}

// DefaultToPullAlways sets imagePullPolicy Always on the containers that have none: how CloneSet and
// StatefulSet read its absence in the pods that they create. Init containers are left to the server.
func DefaultToPullAlways(spec *corev1.PodSpec) {
	for i := range spec.Containers {
		setDefault(&spec.Containers[i].ImagePullPolicy, corev1.PullAlways)
	}
}

// DefaultAllToPullAlways does the same for init containers, too: how jobs read the absence.
func DefaultAllToPullAlways(spec *corev1.PodSpec) {
	DefaultToPullAlways(spec)
	for i := range spec.InitContainers {
		setDefault(&spec.InitContainers[i].ImagePullPolicy, corev1.PullAlways)
	}
}

func defaultContainer(c *corev1.Container, hostNetwork bool) {
	setDefault(&c.ImagePullPolicy, pullPolicyByTag(c.Image))
	setDefault(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	setDefault(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	for i := range c.Ports {
		setDefault(&c.Ports[i].Protocol, corev1.ProtocolTCP)
		if hostNetwork { // no other host port is valid there, and every created pod has it
			setDefault(&c.Ports[i].HostPort, c.Ports[i].ContainerPort)
		}
	}
	for i := range c.Env {
		defaultEnv(c.Env[i].ValueFrom)
	}
	roundUp(c.Resources.Limits)
	roundUp(c.Resources.Requests)
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		defaultProbe(probe)
	}
	if c.Lifecycle != nil {
		for _, handler := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
			if handler != nil {
				defaultHTTPGet(handler.HTTPGet)
			}
		}
	}
}

func defaultEnv(source *corev1.EnvVarSource) {
	if source == nil {
		return
	}
	defaultFieldRef(source.FieldRef)
	if source.FileKeyRef != nil {
		setDefaultPointer(&source.FileKeyRef.Optional, false)
	}
}

func defaultFieldRef(ref *corev1.ObjectFieldSelector) {
	if ref != nil {
		setDefault(&ref.APIVersion, "v1")
	}
}

func defaultProbe(p *corev1.Probe) {
	if p == nil {
		return
	}
	setDefault(&p.TimeoutSeconds, 1)
	setDefault(&p.PeriodSeconds, 10)
	setDefault(&p.SuccessThreshold, 1)
	setDefault(&p.FailureThreshold, 3)
	defaultHTTPGet(p.HTTPGet)
	if p.GRPC != nil {
		setDefaultPointer(&p.GRPC.Service, "")
	}
}

func defaultHTTPGet(get *corev1.HTTPGetAction) {
	if get != nil {
		setDefault(&get.Path, "/")
		setDefault(&get.Scheme, corev1.URISchemeHTTP)
	}
}

// pullPolicyByTag is Always for an image that may change under its name. The port of a registry is
// no tag, and a digest without tag does not change.
func pullPolicyByTag(image string) corev1.PullPolicy {
	name, _, hasDigest := strings.Cut(image, "@")
	tag := name[strings.LastIndexByte(name, '/')+1:]
	_, tag, hasTag := strings.Cut(tag, ":")
	if tag == "latest" || !hasTag && !hasDigest {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

// DefaultClaim sets in the spec of a claim, or of a claim template, the absent fields that the API server sets.
func DefaultClaim(spec *corev1.PersistentVolumeClaimSpec) {
	setDefaultPointer(&spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	roundUp(spec.Resources.Limits)
	roundUp(spec.Resources.Requests)
}

// roundUp rounds quantities up to thousandths, the smallest part that Kubernetes counts.
func roundUp(list corev1.ResourceList) {
	for name, quantity := range list {
		quantity.RoundUp(resource.Milli)
		list[name] = quantity
	}
}

func setDefault[T comparable](field *T, value T) {
	var absent T
	if *field == absent {
		*field = value
	}
}

func setDefaultPointer[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}
