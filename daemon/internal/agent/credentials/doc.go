// Package credentials finds credentials that a registry may accept for an image, by the kubelet's rules.
//
// A full image reference and references to secrets go in; credentials come out, the most specific first.
// Secrets are read one by one, by name and in one namespace only, when an image is about to be pulled. Plugins
// that the kubelet could use are asked too. Unreadable secrets and answers count as absent and are logged, without any
// of their content.
package credentials
