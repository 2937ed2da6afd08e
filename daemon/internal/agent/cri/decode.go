package cri

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Labels and annotations that the kubelet writes on containers.
const (
	podNameLabel       = "io.kubernetes.pod.name"
	podNamespaceLabel  = "io.kubernetes.pod.namespace"
	podUIDLabel        = "io.kubernetes.pod.uid"
	containerNameLabel = "io.kubernetes.container.name"

	hashAnnotation             = "io.kubernetes.container.hash"
	restartCountAnnotation     = "io.kubernetes.container.restartCount"
	preStopAnnotation          = "io.kubernetes.container.preStopHandler"
	portsAnnotation            = "io.kubernetes.container.ports"
	terminationGraceAnnotation = "io.kubernetes.pod.terminationGracePeriod"
	deletionGraceAnnotation    = "io.kubernetes.pod.deletionGracePeriod"
)

func decodeContainer(runtime string, c *runtimev1.Container) Container {
	out := decodeKubelet(c.GetLabels(), c.GetAnnotations())
	out.ID = joinID(runtime, c.GetId())
	out.SandboxID = c.GetPodSandboxId()
	out.State = decodeState(c.GetState())
	out.CreatedAt = time.Unix(0, c.GetCreatedAt())
	return out
}

func decodeStatus(runtime string, r *runtimev1.ContainerStatusResponse) Status {
	s := r.GetStatus()
	out := Status{Container: decodeKubelet(s.GetLabels(), s.GetAnnotations())}
	out.ID = joinID(runtime, s.GetId())
	out.State = decodeState(s.GetState())
	out.CreatedAt = time.Unix(0, s.GetCreatedAt())
	out.StartedAt = decodeTime(s.GetStartedAt())
	out.FinishedAt = decodeTime(s.GetFinishedAt())
	out.Env = decodeEnv(r.GetInfo())
	return out
}

// decodeKubelet reads the labels and annotations that the kubelet wrote. A value that does not parse counts as absent: the
// container is still reported.
func decodeKubelet(labels, annotations map[string]string) Container {
	c := Container{
		Name: labels[containerNameLabel],
		Pod: Pod{
			Namespace: labels[podNamespaceLabel],
			Name:      labels[podNameLabel],
			UID:       types.UID(labels[podUIDLabel]),
		},
		TerminationGracePeriod: decodeInt(annotations[terminationGraceAnnotation]),
		DeletionGracePeriod:    decodeInt(annotations[deletionGraceAnnotation]),
	}
	if count, err := strconv.ParseInt(annotations[restartCountAnnotation], 10, 32); err == nil {
		c.RestartCount = int32(count)
	}
	if hash, err := strconv.ParseUint(annotations[hashAnnotation], 16, 64); err == nil {
		c.Hash = hash
	}
	if hook := new(corev1.LifecycleHandler); json.Unmarshal([]byte(annotations[preStopAnnotation]), hook) == nil {
		c.PreStop = hook
	}
	if text := annotations[portsAnnotation]; text != "" {
		if err := json.Unmarshal([]byte(text), &c.Ports); err != nil {
			c.Ports = nil
		}
	}
	return c
}

// decodeTime reads nanoseconds. The time of an event that has not happened is 0, or negative in some runtimes.
func decodeTime(nanoseconds int64) time.Time {
	if nanoseconds <= 0 {
		return time.Time{}
	}
	return time.Unix(0, nanoseconds)
}

func decodeInt(text string) *int64 {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return &n
	}
	return nil
}

func decodeState(s runtimev1.ContainerState) State {
	switch s {
	case runtimev1.ContainerState_CONTAINER_CREATED:
		return StateCreated
	case runtimev1.ContainerState_CONTAINER_RUNNING:
		return StateRunning
	case runtimev1.ContainerState_CONTAINER_EXITED:
		return StateExited
	default:
		return StateUnknown
	}
}

// decodeEnv finds the environment in the additional information of containerd and CRI-O: the OCI specification
// with which the process was started.
func decodeEnv(info map[string]string) map[string]string {
	var detail struct {
		RuntimeSpec *struct {
			Process *struct {
				Env []string `json:"env"`
			} `json:"process"`
		} `json:"runtimeSpec"`
	}
	if json.Unmarshal([]byte(info["info"]), &detail) != nil || detail.RuntimeSpec == nil || detail.RuntimeSpec.Process == nil {
		return nil
	}
	return parseEnv(detail.RuntimeSpec.Process.Env)
}

// parseEnv parses lines NAME=VALUE; of several with the same name the last one is used.
func parseEnv(lines []string) map[string]string {
	env := make(map[string]string, len(lines))
	for _, line := range lines {
		if name, value, found := strings.Cut(line, "="); found {
			env[name] = value
		}
	}
	return env
}
