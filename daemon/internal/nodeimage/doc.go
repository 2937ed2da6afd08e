// Package nodeimage is the controller of NodeImage.
//
// It creates a NodeImage for every ready node, keeps its labels equal to the node's, removes from its spec what is over
// and gives up pulls that no agent reports about. It pulls nothing itself, and it never writes what the agent reports.
package nodeimage
