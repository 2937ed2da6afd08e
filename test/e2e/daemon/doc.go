// Package daemon tells the stories of the node agent on a real cluster: containers that are recreated, images that are
// pulled ahead, environments that follow metadata, containers that start in order.
package daemon
