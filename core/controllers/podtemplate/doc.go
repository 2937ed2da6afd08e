// Package podtemplate asks the cluster whether a pod template is valid, and for its defaults.
//
// A template and a namespace go in; field errors or the template with defaults come out, from a dry-run create of a
// core/v1 PodTemplate. So the rules are always the rules of the cluster's own version. Answers are cached by content. The
// operator needs the permission to create podtemplates, though none is ever stored. When the server cannot be asked, the
// error is an *UnavailableError: admission returns it, a reconcile continues without the answer.
package podtemplate
