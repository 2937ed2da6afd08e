// Package argocd evaluates the health checks and actions that are shipped for Argo CD, as Argo CD does: an object goes in, its
// health comes out. It also makes the patch of Argo CD's ConfigMap from them.
package argocd
