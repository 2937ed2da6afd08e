// Package install is "flotilla install" and "flotilla uninstall".
//
// Settings and features go in; the kustomization that a user would have written is rendered from the manifests that are
// built in, and applied in stages. Nothing that runs is deleted unless it is asked for twice.
package install
