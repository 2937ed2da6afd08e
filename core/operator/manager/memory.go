package manager

import (
	"io/fs"
	"strconv"
	"strings"
)

// memoryLimit returns 90% of what the control group of this process may use, so that the garbage collector
// works harder before the kernel kills. It reports false when there is no limit. The file system is the root
// of the machine's: both versions of control groups are understood.
func memoryLimit(root fs.FS) (int64, bool) {
	for _, file := range []string{"sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		raw, err := fs.ReadFile(root, file)
		if err != nil {
			continue
		}
		// Without a limit version 2 says "max" and version 1 a number beyond any machine.
		bytes, err := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64)
		return bytes / 10 * 9, err == nil && bytes > 0 && bytes < 1<<60
	}
	return 0, false
}
