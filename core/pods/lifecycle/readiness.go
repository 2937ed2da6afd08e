package lifecycle

import (
	"cmp"
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

// notReadyKey is one entry of the message of condition KruisePodReady.
type notReadyKey struct {
	UserAgent string `json:"userAgent"`
	Key       string `json:"key"`
}

// AddNotReadyKey takes the pod out of service in the name of the user agent and the key. Nothing happens on a pod
// without readiness gate KruisePodReady, and nothing when the key is there already.
func AddNotReadyKey(c *action.PodChange, userAgent, key string) {
	if !podstate.HasReadinessGate(c.Pod, contract.KruisePodReady) {
		return
	}
	keys := notReadyKeys(c)
	if entry := (notReadyKey{userAgent, key}); !slices.Contains(keys, entry) {
		keys = append(keys, entry)
	}
	setNotReadyKeys(c, keys)
}

// RemoveNotReadyKey takes a key back. The pod is in service again once no key is left.
func RemoveNotReadyKey(c *action.PodChange, userAgent, key string) {
	keys := notReadyKeys(c)
	if i := slices.Index(keys, notReadyKey{userAgent, key}); i >= 0 {
		setNotReadyKeys(c, slices.Delete(keys, i, i+1))
	}
}

// SetInitialReadiness gives the readiness gates InPlaceUpdateReady and KruisePodReady their first condition, True, on a
// scheduled pod that has the readiness gate and no condition of its type. The kubelet cannot report the pod ready
// before; waiting for the node lets the conditions share one write with the state Normal.
func SetInitialReadiness(c *action.PodChange) {
	if c.Pod.Spec.NodeName == "" || c.Pod.DeletionTimestamp != nil {
		return
	}
	for _, readinessGate := range [...]corev1.PodConditionType{contract.InPlaceUpdateReady, contract.KruisePodReady} {
		if podstate.HasReadinessGate(c.Pod, readinessGate) && c.Condition(readinessGate) == nil {
			c.SetCondition(readinessGate, corev1.ConditionTrue, "", "")
		}
	}
}

// notReadyKeys reads the keys that the pod will have after the change. A message that is no list of
// keys holds none.
func notReadyKeys(c *action.PodChange) []notReadyKey {
	condition := c.Condition(contract.KruisePodReady)
	if condition == nil || condition.Message == "" {
		return nil
	}
	var keys []notReadyKey
	if err := json.Unmarshal([]byte(condition.Message), &keys); err != nil {
		return nil
	}
	return keys
}

func setNotReadyKeys(c *action.PodChange, keys []notReadyKey) {
	slices.SortFunc(keys, func(a, b notReadyKey) int {
		return cmp.Or(cmp.Compare(a.UserAgent, b.UserAgent), cmp.Compare(a.Key, b.Key))
	})
	keys = slices.Compact(keys)
	message, err := json.Marshal(keys)
	if err != nil { // two strings always marshal
		return
	}
	status := corev1.ConditionFalse
	if len(keys) == 0 {
		status = corev1.ConditionTrue
		message = []byte("[]")
	}
	c.SetCondition(contract.KruisePodReady, status, "", string(message))
}
