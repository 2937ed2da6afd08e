package conversion

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"
)

const inPlacePath = "spec.updateStrategy.inPlaceUpdateStrategy."

// key is a label or annotation that sets a field of the hub in v1alpha1.
type key struct {
	name string
	// field is the path of the field, without rollingUpdate, and path is the path of the label or annotation.
	field, path string
	entries     func(*metav1.ObjectMeta) *map[string]string
	// read sets the field to the value of the text. Nil means that the key is absent; invalid text means the same.
	read func(set *v1beta1.CloneSet, text *string)
	// write returns the text for the field's value; nil means that the key is absent.
	write func(*v1beta1.CloneSet) *string
}

// keys returns all labels and annotations that set fields.
func keys() []key {
	return []key{
		{
			name:    contract.ScalingExcludePreparingDeleteLabel,
			field:   "spec.scaleStrategy.excludePreparingDelete",
			path:    "metadata.labels[" + contract.ScalingExcludePreparingDeleteLabel + "]",
			entries: func(meta *metav1.ObjectMeta) *map[string]string { return &meta.Labels },
			read: func(set *v1beta1.CloneSet, text *string) {
				set.Spec.ScaleStrategy.ExcludePreparingDelete = text != nil && *text == "true"
			},
			write: func(set *v1beta1.CloneSet) *string {
				if !set.Spec.ScaleStrategy.ExcludePreparingDelete {
					return nil
				}
				return new("true")
			},
		},
		annotation(contract.ImagePreDownloadParallelismAnnotation, "imagePreDownloadParallelism",
			func(in *workload.InPlaceUpdateStrategy) **intstr.IntOrString { return &in.ImagePreDownloadParallelism },
			func(text string) (intstr.IntOrString, error) { return intstr.Parse(text), nil },
			func(value intstr.IntOrString) string { return value.String() }),
		annotation(contract.ImagePreDownloadTimeoutSecondsAnnotation, "imagePreDownloadTimeoutSeconds",
			func(in *workload.InPlaceUpdateStrategy) **int32 { return &in.ImagePreDownloadTimeoutSeconds },
			parseInt32, formatInt32),
		annotation(contract.ImagePreDownloadMinUpdatedReadyPodsAnnotation, "imagePreDownloadMinUpdatedReadyPods",
			func(in *workload.InPlaceUpdateStrategy) **int32 { return &in.ImagePreDownloadMinUpdatedReadyPods },
			parseInt32, formatInt32),
	}
}

// annotation is the key of a field of inPlaceUpdateStrategy.
func annotation[T any](
	name, field string,
	of func(*workload.InPlaceUpdateStrategy) **T,
	parse func(string) (T, error),
	format func(T) string,
) key {
	return key{
		name:    name,
		field:   inPlacePath + field,
		path:    "metadata.annotations[" + name + "]",
		entries: func(meta *metav1.ObjectMeta) *map[string]string { return &meta.Annotations },
		read: func(set *v1beta1.CloneSet, text *string) {
			if text == nil {
				return
			}
			if value, err := parse(*text); err == nil {
				*of(inPlace(set)) = &value
			}
		},
		write: func(set *v1beta1.CloneSet) *string {
			rolling := set.Spec.UpdateStrategy.RollingUpdate
			if rolling == nil || rolling.InPlaceUpdateStrategy == nil {
				return nil
			}
			value := *of(rolling.InPlaceUpdateStrategy)
			if value == nil {
				return nil
			}
			return new(format(*value))
		},
	}
}

// inPlace returns the set's inPlaceUpdateStrategy, and creates it if it is absent.
func inPlace(set *v1beta1.CloneSet) *workload.InPlaceUpdateStrategy {
	strategy := &set.Spec.UpdateStrategy
	if strategy.RollingUpdate == nil {
		strategy.RollingUpdate = &v1beta1.RollingUpdateCloneSetStrategy{}
	}
	if strategy.RollingUpdate.InPlaceUpdateStrategy == nil {
		strategy.RollingUpdate.InPlaceUpdateStrategy = &workload.InPlaceUpdateStrategy{}
	}
	return strategy.RollingUpdate.InPlaceUpdateStrategy
}

// readKeys sets the fields for labels and annotations of a v1alpha1 object. It does not remove those.
func readKeys(set *v1beta1.CloneSet) {
	for _, key := range keys() {
		key.read(set, key.get(&set.ObjectMeta))
	}
}

// writeKeys sets the labels and annotations of a v1alpha1 object to the values of the fields, and returns those that it
// changed. Text that has the same value already is not changed.
func writeKeys(set *v1beta1.CloneSet, meta *metav1.ObjectMeta) map[string]keyValues {
	changed := map[string]keyValues{}
	for _, key := range keys() {
		have, want := key.get(meta), key.write(set)
		var meant v1beta1.CloneSet
		key.read(&meant, have)
		if equal(key.write(&meant), want) {
			continue
		}
		changed[key.name] = keyValues{Hub: have, Spoke: want}
		key.set(meta, want)
	}
	return changed
}

// restoreKeys restores the hub's values of labels and annotations that no user of v1alpha1 has changed since.
func restoreKeys(meta *metav1.ObjectMeta, shown map[string]keyValues) {
	for _, key := range keys() {
		if was, ok := shown[key.name]; ok && equal(was.Spoke, key.get(meta)) {
			key.set(meta, was.Hub)
		}
	}
}

func (k key) get(meta *metav1.ObjectMeta) *string {
	if text, ok := (*k.entries(meta))[k.name]; ok {
		return &text
	}
	return nil
}

func (k key) set(meta *metav1.ObjectMeta, text *string) {
	entries := k.entries(meta)
	switch {
	case text == nil:
		delete(*entries, k.name)
	case *entries == nil:
		*entries = map[string]string{k.name: *text}
	default:
		(*entries)[k.name] = *text
	}
}

func equal(a, b *string) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

func parseInt32(text string) (int32, error) {
	value, err := strconv.ParseInt(text, 10, 32)
	return int32(value), err
}

func formatInt32(value int32) string { return strconv.FormatInt(int64(value), 10) }
