package hash

import (
	"hash/fnv"

	"k8s.io/utils/dump"
)

// Object returns the hash of x by FNV-1a, 32 bits, over the deep print of x: pointers are followed and map keys sorted,
// so that equal values have equal hashes wherever they are stored.
func Object(x any) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(dump.ForHash(x))) // the hash never returns an error
	return h.Sum32()
}
