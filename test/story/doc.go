// Package story holds what end-to-end tests are told with: a namespace of their own, eventually, and
// a watch that judges every state in which the cluster can be seen.
//
// Tests wait on conditions and never on time. A story must not know any feature.
package story
