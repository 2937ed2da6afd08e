package main

import "maps"

// mergeKey returns the key by which server-side apply merges the entries of a list, or "". Core validation rejects
// entries with equal keys in these lists, so no stored object can break the rule of a list-map.
func mergeKey(list string) string {
	switch list {
	case "containers", "initContainers", "volumes":
		return "name"
	case "volumeMounts":
		return "mountPath"
	}
	return ""
}

// dropValidation removes the keywords by which a schema rejects or changes values. Built-in kinds have none of them at
// this place: the cluster itself validates, in the dry run of the template.
func dropValidation(node schema) {
	for _, keyword := range []string{
		"default", "required", "enum", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
		"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "uniqueItems",
		"x-kubernetes-validations",
	} {
		delete(node, keyword)
	}
}

// fitEmbedded relaxes the schema of an embedded core type. The description of the node itself is of the kind that
// embeds it, and stays.
func fitEmbedded(name string, node schema) {
	description, described := node["description"]
	fit(name, node)
	if described {
		node["description"] = description
	}
}

func fit(name string, node schema) {
	if isQuantity(node) {
		replace(node, schema{"x-kubernetes-preserve-unknown-fields": true})
		return
	}
	if isBareMetadata(name, node) {
		replace(node, objectMeta())
		return
	}
	delete(node, "description")
	dropValidation(node)
	for property, value := range properties(node) {
		fit(property, value.(schema))
	}
	if values, ok := node["additionalProperties"].(schema); ok {
		fit("", values)
	}
	if items, ok := node["items"].(schema); ok {
		fit("", items)
		fitList(name, node, items)
	}
}

// fitList makes a list a list-map where that is safe, and atomic otherwise. Atomic is the default, and goes without saying: the
// word for each list would take a tenth of the size that client-side apply allows a CRD.
func fitList(name string, list, items schema) {
	delete(list, "x-kubernetes-list-map-keys")
	delete(list, "x-kubernetes-list-type")
	key := mergeKey(name)
	if _, ok := properties(items)[key]; key == "" || !ok {
		return
	}
	list["x-kubernetes-list-type"] = "map"
	list["x-kubernetes-list-map-keys"] = []any{key}
	items["required"] = []any{key}
}

// isQuantity reports whether the schema is of resource.Quantity: a string or an integer, with a pattern. "cpu: 0.5" is
// neither, and every built-in kind accepts it, so the type is removed.
func isQuantity(node schema) bool {
	_, hasPattern := node["pattern"]
	return hasPattern && node["x-kubernetes-int-or-string"] == true
}

// isBareMetadata reports whether the schema is of an embedded ObjectMeta, which controller-gen writes without
// properties, so that the server would drop labels and annotations.
func isBareMetadata(name string, node schema) bool {
	_, hasProperties := node["properties"]
	_, hasValues := node["additionalProperties"]
	return name == "metadata" && node["type"] == "object" && !hasProperties && !hasValues
}

// objectMeta returns the schema of ObjectMeta, with fields that clients send without meaning them, such as
// "creationTimestamp: null"; a misspelt field is an error as in built-in kinds.
func objectMeta() schema {
	meta := schema{}
	for _, name := range []string{"name", "generateName", "namespace", "selfLink", "uid", "resourceVersion"} {
		meta[name] = schema{"type": "string"}
	}
	for _, name := range []string{"generation", "deletionGracePeriodSeconds"} {
		meta[name] = schema{"type": "integer", "format": "int64"}
	}
	for _, name := range []string{"creationTimestamp", "deletionTimestamp"} {
		meta[name] = schema{"type": "string", "format": "date-time", "nullable": true}
	}
	for _, name := range []string{"labels", "annotations"} {
		meta[name] = schema{"type": "object", "additionalProperties": schema{"type": "string"}}
	}
	meta["finalizers"] = schema{"type": "array", "items": schema{"type": "string"}}
	for _, name := range []string{"ownerReferences", "managedFields"} {
		open := schema{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
		meta[name] = schema{"type": "array", "items": open}
	}
	return schema{"type": "object", "properties": meta}
}

func properties(node schema) schema {
	found, _ := node["properties"].(schema)
	return found
}

func replace(node, with schema) {
	clear(node)
	maps.Copy(node, with)
}
