// Package catalog knows which features can be installed: their manifests, images, components and feature gates.
//
// It holds no list of what a feature consists of; that is read from the manifests that are built in. It knows manifests
// only and no code of a feature.
package catalog
