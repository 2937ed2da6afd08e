package hash

import (
	"hash/fnv"

	"k8s.io/utils/dump"
)

// Deep is FNV-1a, 32 bits, over the deep print of x: pointers are followed and map keys sorted, so
// that equal values have equal hashes wherever they are stored.
func Deep(x any) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(dump.ForHash(x))) // the hash never returns an error
	return h.Sum32()
}
