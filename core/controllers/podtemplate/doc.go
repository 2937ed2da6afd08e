// Package podtemplate asks the cluster what a pod template means: whether it is valid and what its
// defaults are.
//
// A template and a namespace go in; field errors or the defaulted template come out, from a dry-run
// create of a core/v1 PodTemplate. So the rules are always those of the cluster's own version.
// Answers are cached by content. The operator needs the permission to create podtemplates, though
// none is ever stored. When the server cannot be asked, the error is an *UnavailableError: admission
// shows it, a reconcile goes on without the answer.
package podtemplate
