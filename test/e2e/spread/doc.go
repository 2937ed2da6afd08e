// Package spread has end-to-end stories of WorkloadSpread.
package spread
