package install

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/flotilla-project/flotilla/kustomize/release/overlays"
)

// labelled returns the manifests with a label NAME=VALUE of each object.
func labelled(manifests []byte, label string) ([]byte, error) {
	if label == "" {
		return manifests, nil
	}
	objects, err := overlays.Objects(manifests)
	if err != nil {
		return nil, err
	}
	name, value, _ := strings.Cut(label, "=")
	var all bytes.Buffer
	for _, o := range objects {
		labels := o.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[name] = value
		o.SetLabels(labels)
		text, err := o.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("encode %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		all.Write(append(text, '\n'))
	}
	return all.Bytes(), nil
}

// workloads returns the Deployments and DaemonSets among the manifests, as kubectl names them.
func workloads(manifests []byte) ([]string, error) {
	objects, err := overlays.Objects(manifests)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, o := range objects {
		if kind := o.GetKind(); kind == "Deployment" || kind == "DaemonSet" {
			found = append(found, strings.ToLower(kind)+"/"+o.GetName())
		}
	}
	return found, nil
}
