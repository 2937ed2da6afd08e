// Package ordinals knows which numbers the pods of a StatefulSet have.
//
// The entries of spec.reserveOrdinals go in, numbers and ranges; a Reserved comes out, which reports for any ordinal
// whether it is reserved, and which ordinals are live. Ranges stay ranges: "0-2000000000" costs no more than "0-2".
// It must never count through the reserved ordinals.
package ordinals
