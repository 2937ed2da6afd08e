package takeover

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
)

// recordKey is where the record stands in its ConfigMap.
const recordKey = "record.json.gz"

// Record has the parts that a handover took away, from which it is undone. Its JSON is compressed: definitions are large.
type Record struct {
	// Webhooks are the parts that the configurations lost, by description of the configuration.
	Webhooks map[string]Removed `json:"webhooks,omitempty"`
	// Definitions are the specs of the CRDs by name.
	Definitions map[string]any `json:"definitions,omitempty"`
	// Labels are the labels of these CRDs by name, which name the tool that manages them.
	Labels map[string]map[string]string `json:"labels,omitempty"`
	// Annotations are the annotations of these CRDs by name. A CRD that an earlier version of the command recorded is absent.
	Annotations map[string]map[string]string `json:"annotations,omitempty"`
	// Gates are the feature gates that were turned off.
	Gates []string `json:"gates,omitempty"`
}

// add adds the parts that a later run takes away, such as webhooks that were applied again. The first definition of a CRD
// stays: later ones are Flotilla's.
func (r *Record) add(later Record) {
	if r.Webhooks == nil {
		r.Webhooks = map[string]Removed{}
	}
	for name, removed := range later.Webhooks {
		have := r.Webhooks[name]
		r.Webhooks[name] = Removed{List: join(have.List, removed.List), Template: join(have.Template, removed.Template)}
	}
	if r.Definitions == nil {
		r.Definitions = map[string]any{}
	}
	if r.Labels == nil {
		r.Labels = map[string]map[string]string{}
	}
	if r.Annotations == nil {
		r.Annotations = map[string]map[string]string{}
	}
	for name, spec := range later.Definitions {
		if _, there := r.Definitions[name]; !there {
			r.Definitions[name] = spec
			r.Labels[name] = later.Labels[name]
			r.Annotations[name] = later.Annotations[name]
		}
	}
	for _, name := range later.Gates {
		if !slices.Contains(r.Gates, name) {
			r.Gates = append(r.Gates, name)
		}
	}
}

// write puts the record into its ConfigMap.
func (r *Record) write(object *unstructured.Unstructured) error {
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode the record: %w", err)
	}
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	if _, err := writer.Write(text); err != nil {
		return fmt.Errorf("compress the record: %w", err)
	}
	if err := writer.Close(); err != nil {
		return fmt.Errorf("compress the record: %w", err)
	}
	object.Object["binaryData"] = map[string]any{recordKey: base64.StdEncoding.EncodeToString(packed.Bytes())}
	return nil
}

// readRecord reads the record out of its ConfigMap. It is empty until something is about to be taken away.
func readRecord(object *unstructured.Unstructured) (Record, error) {
	var record Record
	encoded, recorded, _ := unstructured.NestedString(object.Object, "binaryData", recordKey)
	if !recorded {
		return record, nil
	}
	packed, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return record, fmt.Errorf("read the record: %w", err)
	}
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return record, fmt.Errorf("read the record: %w", err)
	}
	text, err := io.ReadAll(reader)
	if err != nil {
		return record, fmt.Errorf("read the record: %w", err)
	}
	var fields map[string]any
	// Numbers must stay integers, which a decoder into the struct's any would make floats.
	if err := json.Unmarshal(text, &fields); err != nil {
		return record, fmt.Errorf("read the record: %w", err)
	}
	record.Definitions, _, _ = unstructured.NestedMap(fields, "definitions")
	record.Labels = textsOf(fields, "labels")
	record.Annotations = textsOf(fields, "annotations")
	record.Gates, _, _ = unstructured.NestedStringSlice(fields, "gates")
	record.Webhooks = map[string]Removed{}
	webhooks, _, _ := unstructured.NestedMap(fields, "webhooks")
	for name := range webhooks {
		list, _, _ := unstructured.NestedSlice(webhooks, name, "list")
		templated, _, _ := unstructured.NestedSlice(webhooks, name, "template")
		record.Webhooks[name] = Removed{List: list, Template: templated}
	}
	return record, nil
}

// textsOf returns the labels or annotations of CRDs by name.
func textsOf(fields map[string]any, field string) map[string]map[string]string {
	all := map[string]map[string]string{}
	recorded, _, _ := unstructured.NestedMap(fields, field)
	for name := range recorded {
		all[name], _, _ = unstructured.NestedStringMap(recorded, name)
	}
	return all
}
