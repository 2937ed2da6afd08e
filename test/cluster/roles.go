package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// Roles that the command plays inside a cluster; each is its first argument.
const (
	roleSupervisor     = "role-supervisor"
	roleMachine        = "role-machine"
	roleRegistry       = "role-registry"
	roleVolumeExpander = "role-volume-expander"
)

// commandPackage is the package of the command that plays the roles.
const commandPackage = "github.com/flotilla-project/flotilla/test/cluster/cmd/cluster"

// PlayRole runs the part of a cluster for which this package has started the command. played reports whether it was
// started for one. args are the command's arguments with its name. simulate, if set, runs the nodes of simulated
// clusters.
func PlayRole(ctx context.Context, args []string, simulate SimulatedNodes) (played bool, err error) {
	if filepath.Base(args[0]) == wrapperName {
		return true, runWrapped(args)
	}
	if len(args) < 2 {
		return false, nil
	}
	rest := args[2:]
	switch args[1] {
	case roleSupervisor:
		if len(rest) != 1 {
			return true, errRoleArguments(args)
		}
		return true, supervise(ctx, rest[0], simulate)
	case roleMachine:
		return true, runMachine(ctx, os.Stdin)
	case roleRegistry:
		if len(rest) != 2 {
			return true, errRoleArguments(args)
		}
		return true, serveRegistry(ctx, rest[0], rest[1])
	case roleVolumeExpander:
		if len(rest) != 1 {
			return true, errRoleArguments(args)
		}
		return true, expandVolumes(ctx, rest[0])
	}
	return false, nil
}

func errRoleArguments(args []string) error {
	return fmt.Errorf("wrong arguments for the internal command %s", args[1])
}
