package action

import corev1 "k8s.io/api/core/v1"

// Patches are the writes of the change, in this order: conditions through pods/status, so that the
// pod is out of service before anything else happens; resources through pods/resize; all else
// through the pod. Labels and annotations ride on pods/status, which keeps them, when nothing else
// needs the last write. They follow a resize, so that a pod with a refused resize is not labelled as if it had
// succeeded.
func (c *PodChange) Patches() []Patch {
	var patches []Patch
	meta := c.metadata()
	needMain := len(c.images) > 0 || len(c.newFinalizers)+len(c.removedFinalizers) > 0 ||
		len(meta) > 0 && (len(c.resources) > 0 || len(c.conditions) == 0)
	if len(c.conditions) > 0 {
		body := map[string]any{"status": map[string]any{"conditions": c.conditionList()}}
		if !needMain && len(meta) > 0 {
			body["metadata"] = meta
		}
		patches = append(patches, Patch{Subresource: "status", Body: body})
	}
	if len(c.resources) > 0 {
		body := map[string]any{"spec": c.containerSpec(c.resourceList)}
		patches = append(patches, Patch{
			Subresource:  "resize",
			Body:         body,
			FieldManager: c.resizeManager,
		})
	}
	if needMain {
		body := map[string]any{}
		if len(c.images) > 0 {
			body["spec"] = c.containerSpec(c.imageList)
		}
		if len(meta) > 0 {
			body["metadata"] = meta
		}
		patches = append(patches, Patch{Body: body})
	}
	return patches
}

func (c *PodChange) metadata() map[string]any {
	meta := map[string]any{}
	if len(c.labels) > 0 {
		meta["labels"] = c.labels
	}
	if len(c.annotations) > 0 {
		meta["annotations"] = c.annotations
	}
	if len(c.newFinalizers) > 0 {
		meta["finalizers"] = anyList(c.newFinalizers)
	}
	if len(c.removedFinalizers) > 0 {
		meta["$deleteFromPrimitiveList/finalizers"] = anyList(c.removedFinalizers)
	}
	return meta
}

func (c *PodChange) conditionList() []any {
	list := make([]any, 0, len(c.conditions))
	for _, n := range c.conditions {
		list = append(list, map[string]any{
			"type":               string(n.Type),
			"status":             string(n.Status),
			"reason":             textOrNil(n.Reason),
			"message":            textOrNil(n.Message),
			"lastTransitionTime": n.LastTransitionTime.UTC().Format("2006-01-02T15:04:05Z"),
		})
	}
	return list
}

// containerSpec returns the part of a patch that a list of changes makes for the pod's containers of both kinds.
func (c *PodChange) containerSpec(changes func([]corev1.Container) []any) map[string]any {
	spec := map[string]any{}
	if list := changes(c.Pod.Spec.InitContainers); len(list) > 0 {
		spec["initContainers"] = list
	}
	if list := changes(c.Pod.Spec.Containers); len(list) > 0 {
		spec["containers"] = list
	}
	return spec
}

func (c *PodChange) imageList(containers []corev1.Container) []any {
	var list []any
	for i := range containers {
		if image, ok := c.images[containers[i].Name]; ok {
			list = append(list, map[string]any{"name": containers[i].Name, "image": image})
		}
	}
	return list
}

func (c *PodChange) resourceList(containers []corev1.Container) []any {
	var list []any
	for i := range containers {
		r, ok := c.resources[containers[i].Name]
		if !ok {
			continue
		}
		resources := map[string]any{}
		if len(r.Limits) > 0 {
			resources["limits"] = quantities(r.Limits)
		}
		if len(r.Requests) > 0 {
			resources["requests"] = quantities(r.Requests)
		}
		list = append(list, map[string]any{"name": containers[i].Name, "resources": resources})
	}
	return list
}

func quantities(l corev1.ResourceList) map[string]any {
	m := make(map[string]any, len(l))
	for name, q := range l {
		m[string(name)] = q.String()
	}
	return m
}

func anyList(texts []string) []any {
	list := make([]any, 0, len(texts))
	for _, text := range texts {
		list = append(list, text)
	}
	return list
}

// textOrNil makes an empty text a removal, so that the old text does not survive the merge.
func textOrNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}
