package plan

import (
	"maps"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/workloads/revision"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// IsMember reports whether a pod of the name would be a pod of the set: "web-0" would be one of "web",
// "web-00", "web-a" and "web-0-0" would not.
func IsMember(set *v1beta1.StatefulSet, pod string) bool {
	_, ok := ordinalOf(set.Name, pod)
	return ok
}

// ordinalOf is the ordinal in a pod's name, and whether the name is the name of a member.
func ordinalOf(set, pod string) (ordinal int32, member bool) {
	digits, ok := indexOf(set, pod)
	if !ok || digits == "" || len(digits) > 1 && digits[0] == '0' || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 32)
	return int32(n), err == nil
}

// indexOf is the part after the set's name and a dash.
func indexOf(set, pod string) (string, bool) {
	rest, ok := strings.CutPrefix(pod, set)
	if !ok {
		return "", false
	}
	return strings.CutPrefix(rest, "-")
}

func podName(set string, ordinal int32) string { return set + "-" + strconv.Itoa(int(ordinal)) }

// identityLabels are the labels that show which pod it is.
func (p *pass) identityLabels(name string) map[string]string {
	labels := map[string]string{appsv1.StatefulSetPodNameLabel: name}
	if index, ok := indexOf(p.Set.Name, name); ok && p.FeatureGates.PodIndexLabel {
		labels[appsv1.PodIndexLabel] = index
	}
	return labels
}

// missingLabels are the labels that the pod must have and has not: the labels of its identity, and the label of the
// update revision where it carries an older one with an equal template.
func (p *pass) missingLabels(o podstate.State) map[string]string {
	index, _ := indexOf(p.Set.Name, o.Pod.Name)
	identified := o.Pod.Labels[appsv1.StatefulSetPodNameLabel] == o.Pod.Name &&
		(!p.FeatureGates.PodIndexLabel || o.Pod.Labels[appsv1.PodIndexLabel] == index)
	renamed := p.Chosen.Update != nil && o.Revision != podstate.ShortHash(p.Chosen.Update.Name) && p.hasUpdateTemplate(o.Revision)
	if identified && !renamed {
		return nil
	}
	labels := p.identityLabels(o.Pod.Name)
	if renamed {
		maps.Copy(labels, revision.Labels(p.Chosen.Update.Name))
	}
	return labels
}
