// Package endurance lets the operators of all features work for hours on a simulated cluster, and judges whether they stay as
// they are: their memory, their goroutines and the series of their metrics may not grow, and their queues must become empty.
//
// A Place makes one life after the other: a namespace of its own, the objects of a Kind, random edits of them and random ends of
// their pods, and the end of the namespace. Samples of each operator are taken all the time. Judge is a pure function of them.
package endurance
