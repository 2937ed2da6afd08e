// Package nodeimage is the controller of NodeImage.
//
// It creates a NodeImage for every ready node, keeps its labels equal to the node's, removes entries that are over from its
// spec and gives up pulls that no agent reports about. It pulls nothing itself, and it never writes the agent's reports.
package nodeimage
