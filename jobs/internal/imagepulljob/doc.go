// Package imagepulljob is the controller of ImagePullJob.
//
// It asks for the image in the NodeImages of the selected nodes, as many at a time as the job allows, and reads the
// results there. It pulls nothing itself. While the cluster does not serve NodeImage it reports this, and begins when
// the kind appears.
package imagepulljob
