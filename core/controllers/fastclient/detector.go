package fastclient

import (
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Detector finds cached objects that were changed after they were handed out. It is for tests: it keeps a copy of every
// object. Its zero value is ready to use.
type Detector struct {
	mu     sync.Mutex
	copies map[client.Object]runtime.Object
}

// Observe remembers the object as it is now, unless it is known already.
func (d *Detector) Observe(object client.Object) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, known := d.copies[object]; known {
		return
	}
	if d.copies == nil {
		d.copies = map[client.Object]runtime.Object{}
	}
	d.copies[object] = object.DeepCopyObject()
}

// Check fails the test for every object that was changed after it was handed out.
func (d *Detector) Check(t interface {
	Helper()
	Errorf(format string, args ...any)
},
) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	for object, copied := range d.copies {
		if !reflect.DeepEqual(object, copied) {
			t.Errorf("a cached object was changed: %T %s/%s\nhanded out: %+v\nnow: %+v",
				object, object.GetNamespace(), object.GetName(), copied, object)
		}
	}
}
