// Package foretold compares the warning about an edit of a pod template with its effect on the pods.
package foretold

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/contract"
)

// Outcome is the effect of an edit on the pods: how many were replaced or updated in place, and the names of the
// containers that were restarted in each pod that was updated in place.
type Outcome struct {
	Recreated, InPlace int
	Restarted          string
}

var (
	recreation = regexp.MustCompile(`^(\d+) of \d+ pods will be recreated`)
	inPlace    = regexp.MustCompile(`^(\d+) of \d+ pods will be updated in place`)
	container  = regexp.MustCompile(`(\S+) \([a-z, ]+\)`)
)

// By returns the outcome that a warning names. It is empty if no pod changes.
func By(warning string) (o Outcome) {
	if m := recreation.FindStringSubmatch(warning); m != nil {
		o.Recreated, _ = strconv.Atoi(m[1])
	}
	if m := inPlace.FindStringSubmatch(warning); m != nil {
		o.InPlace, _ = strconv.Atoi(m[1])
		var names []string
		for _, c := range container.FindAllStringSubmatch(warning, -1) {
			names = append(names, c[1])
		}
		slices.Sort(names)
		o.Restarted = strings.Join(names, " ")
	}
	return o
}

// Portrait is pods by their UIDs: the revision of each, and the IDs of its containers.
type Portrait map[types.UID]portrayed

type portrayed struct {
	revision   string
	containers map[string]string // IDs by name
}

// Portray returns the portrait of the pods.
func Portray(pods []*corev1.Pod) Portrait {
	all := Portrait{}
	for _, pod := range pods {
		p := portrayed{revision: pod.Labels[contract.RevisionLabel], containers: map[string]string{}}
		for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			p.containers[s.Name] = s.ContainerID
		}
		all[pod.UID] = p
	}
	return all
}

// Until returns the outcome of the time from the portrait to the present pods. Restarts that differ between pods, and
// those in pods that keep their revision, are all named.
func (p Portrait) Until(pods []*corev1.Pod) (o Outcome) {
	now := Portray(pods)
	restarts := map[string]bool{}
	for uid, was := range p {
		is, stays := now[uid]
		if !stays {
			o.Recreated++
			continue
		}
		var names []string
		for _, name := range slices.Sorted(maps.Keys(is.containers)) {
			if is.containers[name] != was.containers[name] {
				names = append(names, name)
			}
		}
		switch {
		case is.revision != was.revision:
			o.InPlace++
			restarts[strings.Join(names, " ")] = true
		case len(names) > 0:
			restarts[fmt.Sprintf("%v in a pod that keeps its revision", names)] = true
		}
	}
	o.Restarted = strings.Join(slices.Sorted(maps.Keys(restarts)), "; ")
	return o
}
