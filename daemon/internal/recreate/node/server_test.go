package node_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/core/simulation/operator"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

var (
	errRefused error = apierrors.NewTooManyRequests(`admission webhook "limit" denied the request: refused`, 0)
	errLost          = errors.New("the answer is lost")
)

// event is a change of a request as the agent's selection shows it; a nil object is one that has left it.
type event struct {
	uid    types.UID
	object *v1beta1.ContainerRecreateRequest
}

// put stores a request.
func (w *world) put(r *v1beta1.ContainerRecreateRequest) {
	w.version++
	r.ResourceVersion = strconv.Itoa(w.version)
	if r.DeletionTimestamp != nil && len(r.Finalizers) == 0 {
		w.remove(r.UID)
		return
	}
	w.server[r.UID] = r
	if r.Labels[v1beta1.ActiveLabel] == "" {
		w.events = append(w.events, event{uid: r.UID})
		return
	}
	w.events = append(w.events, event{r.UID, r.DeepCopy()})
}

func (w *world) remove(uid types.UID) {
	delete(w.server, uid)
	delete(w.owed, uid)
	w.events = append(w.events, event{uid: uid})
}

// list shows the agent every active request as it is now.
func (w *world) list() {
	clear(w.cache)
	w.events = nil
	for uid, r := range w.server {
		if r.Labels[v1beta1.ActiveLabel] != "" {
			w.cache[uid] = r.DeepCopy()
		}
	}
}

// watch shows the agent the next event.
func (w *world) watch() {
	if len(w.events) == 0 {
		return
	}
	next := w.events[0]
	w.events = w.events[1:]
	if next.object == nil {
		delete(w.cache, next.uid)
		return
	}
	w.cache[next.uid] = next.object
}

// refuse begins to refuse some kind of write, or stops to.
func (w *world) refuse() {
	kind := w.choice("agent", "later", "metadata", "status", "pod")
	w.refused[kind] = !w.refused[kind]
	w.note("writes of %s are refused: %v", kind, w.refused[kind])
}

// write is the server's answer to a status patch of the agent, which may be killed once it has it.
func (w *world) write(a *action.Action) progress.Outcome {
	r := a.Object.(*v1beta1.ContainerRecreateRequest)
	err := w.patch(r, a.Patches[0])
	switch {
	case err == nil && w.odds(30):
		err = operator.ErrCrash
	case err == nil:
		w.asked.Taken(r.Name)
	}
	return progress.OutcomeOf(err)
}

func (w *world) patch(r *v1beta1.ContainerRecreateRequest, patch action.Patch) error {
	if w.refused["agent"] {
		w.judgeTry(r.Name, &w.asked)
		return errRefused
	}
	status, _ := patch.Body["status"].(map[string]any)
	if w.odds(12) || w.refused["later"] && status["phase"] == v1beta1.RecreatePending {
		return errRefused
	}
	stored := w.server[r.UID]
	if stored == nil || stored.ResourceVersion != r.ResourceVersion {
		return apierrors.NewConflict(schema.GroupResource{}, r.Name, errors.New("changed"))
	}
	body, err := json.Marshal(patch.Body)
	w.must(err == nil, "%v", err)
	changed := w.merge(stored, body)
	w.judgeStates(stored, changed)
	w.note("status of %s: %s", stored.Name, body)
	w.heard[changed.UID] = w.now
	w.put(changed)
	if w.odds(12) {
		return errLost
	}
	w.written[changed.UID] = w.version
	return nil
}

// merge returns a request after a merge patch.
func (w *world) merge(r *v1beta1.ContainerRecreateRequest, body []byte) *v1beta1.ContainerRecreateRequest {
	before, err := json.Marshal(r)
	w.must(err == nil, "%v", err)
	after, err := jsonpatch.MergePatch(before, body)
	w.must(err == nil, "%v", err)
	changed := &v1beta1.ContainerRecreateRequest{}
	w.must(json.Unmarshal(after, changed) == nil, "%s", after)
	return changed
}

// request creates a request for some containers.
func (w *world) request() {
	w.next++
	r := request("r"+strconv.Itoa(w.next), func(r *v1beta1.ContainerRecreateRequest) {
		r.CreationTimestamp.Time = w.at("server").Truncate(time.Second)
		r.Labels[v1beta1.PodUIDLabel], r.Labels[v1beta1.ActiveLabel] = string(w.pod), "true"
		r.Spec.Containers = nil
		s := r.Spec.Strategy
		s.OrderedRecreate, s.ForceRecreate = w.rng.IntN(2) == 0, w.rng.IntN(3) == 0
		s.MinStartedSeconds = int32(w.rng.IntN(2) * 3)
		if w.rng.IntN(3) == 0 {
			s.UnreadyGracePeriodSeconds = new(int64(w.rng.IntN(4)))
			if w.rng.IntN(5) == 0 {
				s.UnreadyGracePeriodSeconds = new(int64(90)) // longer than an agent may be silent
			}
		}
		if w.rng.IntN(2) == 0 {
			s.FailurePolicy = v1beta1.FailurePolicyIgnore
		}
		if w.rng.IntN(3) == 0 {
			r.Spec.ActiveDeadlineSeconds = new(int64(3 + w.rng.IntN(12)))
		}
		if w.rng.IntN(4) == 0 {
			r.Spec.TTLSecondsAfterFinished = new(int32(w.rng.IntN(30)))
		}
	})
	for _, name := range names() {
		if run := w.newest(name); w.rng.IntN(2) == 0 {
			c := v1beta1.ContainerToRecreate{
				Name: name, StatusContext: &v1beta1.ContainerStatusContext{ContainerID: run.ID, RestartCount: run.RestartCount},
			}
			if w.rng.IntN(2) == 0 {
				c.PreStop = &v1beta1.PreStopHandler{}
			}
			r.Spec.Containers = append(r.Spec.Containers, c)
		}
	}
	w.heard[r.UID] = w.now
	w.put(r)
	w.note("request %s for %v, strategy %+v", r.Name, r.Spec.Containers, *r.Spec.Strategy)
}

// removeOne is a user who deletes a request.
func (w *world) removeOne() {
	for _, uid := range w.uids() {
		if r := w.server[uid]; r.DeletionTimestamp == nil {
			w.note("%s is deleted", r.Name)
			going := r.DeepCopy()
			going.DeletionTimestamp = &r.CreationTimestamp
			delete(w.owed, uid)
			w.put(going)
			return
		}
	}
}

func (w *world) uids() []types.UID {
	var uids []types.UID
	for uid := range w.server {
		uids = append(uids, uid)
	}
	slices.Sort(uids)
	w.rng.Shuffle(len(uids), func(i, j int) { uids[i], uids[j] = uids[j], uids[i] })
	return uids
}
