// Package admission connects the API server's webhook calls with the rules of a kind.
//
// Rules are written once, for the hub version of a kind. A Kind knows every served version: it decodes an object in the
// version that was sent, converts it to the hub, runs the rules there, and answers for the version that was sent: field
// paths are mapped back, and defaults become a JSON patch of only the changed fields. Kinds of others, such as Pod, and
// their subresources are handled in the same way in the one version that their webhooks ask for. This package never
// changes a field that the rules did not change, and it never reads or writes the cluster itself.
package admission
