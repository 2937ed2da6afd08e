package testenv

import _ "embed" // for the definition

//go:embed imagepulljobs.yaml
var imagePullJobs []byte
