// Package simulate has "flotilla simulate": the forecast of an edit that a manifest or flags describe.
//
// The edit is applied to the live object as kubectl apply does, and validated by a dry run. Package forecast plays it.
package simulate
