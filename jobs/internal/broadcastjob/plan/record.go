package plan

import (
	"encoding/binary"
	"hash/fnv"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// nodeKey is how a node is recorded: a hash of its UID, so that another node of the same name is another one.
func nodeKey(uid types.UID) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(uid)) // the hash never returns an error
	return h.Sum64()
}

// recorded returns the nodes of status.succeededNodes. Unreadable entries are left out.
func (s *Snapshot) recorded() map[uint64]bool {
	raw := s.Job.Status.SucceededNodes
	known := make(map[uint64]bool, len(raw)/8)
	for ; len(raw) >= 8; raw = raw[8:] {
		known[binary.BigEndian.Uint64(raw)] = true
	}
	return known
}

// record returns status.succeededNodes for the nodes that there are.
func record(places []*place) []byte {
	known := map[uint64]bool{}
	for _, l := range places {
		if l.node != nil && l.state == succeeded {
			known[nodeKey(l.node.UID)] = true
		}
	}
	var raw []byte
	for _, key := range slices.Sorted(maps.Keys(known)) {
		raw = binary.BigEndian.AppendUint64(raw, key)
	}
	return raw
}
