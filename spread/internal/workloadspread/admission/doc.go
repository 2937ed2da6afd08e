// Package admission answers the API server about WorkloadSpreads and about the pods that they spread.
//
// A new pod goes in, and comes out with the rules of its subset. Its place there is taken in the status of its spread, in
// one write for all pods that come at the same time; every replica of the webhook does so, and the version of the object
// decides between them (Keeper). Deletions of pods are noted in the same way. The rules are in package plan, the rules of
// the kind in Validate.
package admission
