// Package argocd evaluates the health checks that are shipped for Argo CD, as Argo CD does: an object goes in, its
// health comes out.
package argocd
