// Package catalog knows which features can be installed: their manifests, images, components and feature gates.
//
// It has no list of the parts of a feature; they are read from the manifests that are built in. It knows manifests only and
// no code of a feature.
package catalog
