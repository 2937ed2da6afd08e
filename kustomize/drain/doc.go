// Package drain is flotilla drain: kubectl drain that knows pods of the DaemonSets of apps.kruise.io.
//
// To kubectl these pods are ordinary ones: it evicts them, and they come back to the cordoned node, which they tolerate. The
// verdict on each pod is a pure function of the pod; the command cordons, evicts and waits.
package drain
