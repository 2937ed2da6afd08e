package recreate

import (
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/util/uuid"
)

// bootIDFile has the boot ID of the node, as in the status of the Node, also within a container.
const bootIDFile = "/proc/sys/kernel/random/boot_id"

// clockName names the clock of this machine: its boot ID. Where there is none the name is another one in each
// process.
func clockName() string {
	id, err := os.ReadFile(bootIDFile)
	if name := strings.TrimSpace(string(id)); err == nil && name != "" {
		return name
	}
	return string(uuid.NewUUID())
}
