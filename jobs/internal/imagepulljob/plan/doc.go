// Package plan decides about one ImagePullJob: which nodes pull its image next, which entries of NodeImages it gives up,
// which copies of pull secrets it needs, and how far it is.
//
// A snapshot goes in; actions and the next status come out. It is pure, and its cost is linear in the nodes of the one
// job. It never pulls anything: node agents carry out the requests in NodeImages.
package plan
