// Package workloadspread has end-to-end stories of WorkloadSpread.
package workloadspread
