package newpod

// longestPrefix leaves room for a random end in a name that is legal as a label and a host name, too.
const longestPrefix = 58

// NamePrefix is the beginning of the names of a workload's pods, before a random end of five characters: the workload's
// name and a dash, cut as the API server cuts generateName, so that the pods of a workload with a long name have legal
// names, too.
func NamePrefix(workload string) string {
	prefix := workload + "-"
	return prefix[:min(len(prefix), longestPrefix)]
}
