// Package imagepulljob is the controller of ImagePullJob.
//
// It asks for the image in the NodeImages of the selected nodes, as many at a time as the job allows, and reads there
// what became of it. It pulls nothing itself. While the cluster does not serve NodeImage it says so, and begins when the
// kind appears.
package imagepulljob
