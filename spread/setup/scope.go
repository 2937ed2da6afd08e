package setup

import (
	"fmt"

	"github.com/flotilla-project/flotilla/core/controllers/scope"
	"github.com/flotilla-project/flotilla/core/operator/manager"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
)

// limit has only pods cached of namespaces that have a WorkloadSpread, or the label for one.
func (s *settings) limit(env *manager.Environment) error {
	live, err := env.APIReader("scope")
	if err != nil {
		return fmt.Errorf("make a reader of pods: %w", err)
	}
	mgr := env.Manager
	s.scope.From(scope.Marked[v1beta1.WorkloadSpread](mgr.GetCache(), mgr.GetScheme(), live, v1beta1.NamespaceLabel))
	return nil
}
