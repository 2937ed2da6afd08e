// Package result has the conditions Complete and Failed of a ContainerRecreateRequest that has ended.
//
// The states of the containers go in, and what ended the request early; its conditions come out. The node agent and the
// manager both end requests, and write the conditions together with phase Completed. Everything here is pure.
package result
