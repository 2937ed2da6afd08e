package recreate

import (
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/util/uuid"
)

// bootIDFile has the boot ID of the node, as in the status of the Node, also within a container.
const bootIDFile = "/proc/sys/kernel/random/boot_id"

// clockName returns the name of this machine's clock: its boot ID. Without one the name differs in each process.
func clockName() string {
	id, err := os.ReadFile(bootIDFile)
	if name := strings.TrimSpace(string(id)); err == nil && name != "" {
		return name
	}
	return string(uuid.NewUUID())
}
