// Package nodeimage is the controller of NodeImage.
//
// It gives every ready node a NodeImage, keeps its labels those of the node, drops what of its spec is over
// and gives up pulls that no agent reports about. It pulls nothing itself, and it never writes what the agent
// reports.
package nodeimage
