package setup

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/flotilla-project/flotilla/jobs/internal/advancedcronjob"
	"github.com/flotilla-project/flotilla/jobs/internal/broadcastjob"
	"github.com/flotilla-project/flotilla/jobs/internal/imagelistpulljob"
	"github.com/flotilla-project/flotilla/jobs/internal/imagepulljob"
	"github.com/flotilla-project/flotilla/jobs/internal/sidecarterminator"
)

// controllers is the flag with the controllers that run, in the form of kube-controller-manager.
type controllers []string

func allControllers() controllers { return controllers{"*"} }

// known are the names of all controllers.
func known() []string {
	return []string{
		advancedcronjob.ControllerName, broadcastjob.ControllerName,
		imagepulljob.ControllerName, imagelistpulljob.ControllerName, sidecarterminator.ControllerName,
	}
}

// String implements pflag.Value.
func (c *controllers) String() string { return strings.Join(*c, ",") }

// Type implements pflag.Value.
func (c *controllers) Type() string { return "names" }

// Set implements pflag.Value.
func (c *controllers) Set(text string) error {
	names := strings.Split(text, ",")
	for _, name := range names {
		if name != "*" && !slices.Contains(known(), strings.TrimPrefix(name, "-")) {
			return fmt.Errorf("unknown controller %q: use %s", name, strings.Join(known(), ", "))
		}
	}
	*c = names
	return nil
}

// run reports whether a controller runs.
func (c *controllers) run(name string) bool {
	if slices.Contains(*c, "-"+name) {
		return false
	}
	return slices.Contains(*c, name) || slices.Contains(*c, "*")
}

// ttlSeconds is a time to live in seconds.
type ttlSeconds int

// String implements pflag.Value.
func (t *ttlSeconds) String() string { return strconv.Itoa(int(*t)) }

// Type implements pflag.Value.
func (t *ttlSeconds) Type() string { return "int" }

// Set implements pflag.Value.
func (t *ttlSeconds) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > longestTTL {
		return fmt.Errorf("must be a number from 0 to %d", longestTTL)
	}
	*t = ttlSeconds(n)
	return nil
}
