package workloads

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// errNumber means that a path has an invalid number of replicas.
var errNumber = errors.New("invalid number of replicas")

// Sum returns the sum of the integers at the paths in an object, such as spec.groups.1.replicas. An empty path counts 0.
func Sum(object map[string]any, paths ...string) (int32, error) {
	var sum int64
	for _, path := range paths {
		if path == "" {
			continue
		}
		n, err := integerAt(object, path)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	if sum < 0 || sum > 1<<31-1 {
		return 0, fmt.Errorf("%w: the sum is %d", errNumber, sum)
	}
	return int32(sum), nil
}

func integerAt(object map[string]any, path string) (int64, error) {
	var at any = object
	for name := range strings.SplitSeq(path, ".") {
		switch v := at.(type) {
		case map[string]any:
			next, ok := v[name]
			if !ok {
				return 0, fmt.Errorf("%w at path %s: %s is missing", errNumber, path, name)
			}
			at = next
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(v) {
				return 0, fmt.Errorf("%w at path %s: %s must be an index of a list of %d", errNumber, path, name, len(v))
			}
			at = v[i]
		default:
			return 0, fmt.Errorf("%w at path %s: %s is below a single value", errNumber, path, name)
		}
	}
	n, ok := at.(int64)
	if !ok {
		return 0, fmt.Errorf("%w at path %s: the value must be an integer", errNumber, path)
	}
	return n, nil
}
