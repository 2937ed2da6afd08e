package plan

// EventEnvironmentUnknown is the reason of the event on a pod if the environment of a container cannot be read.
const EventEnvironmentUnknown = "EnvironmentUnknown"

// Reasons are all that users read of this package.
var Reasons = []string{EventEnvironmentUnknown}
