package scale

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/test/cluster"
	"github.com/flotilla-project/flotilla/test/managers"
)

// operator is a feature's operator as a process that is measured.
type operator struct {
	process
	*managers.Manager
}

// newOperator builds the operator and installs its manifests, but does not start it.
func newOperator(ctx context.Context, c *cluster.Cluster, api client.Client, folder string, o Options) (*operator, error) {
	if needs := features()[o.Feature].needs; needs != "" {
		if err := managers.Define(ctx, api, needs); err != nil {
			return nil, err
		}
	}
	m, err := managers.Install(ctx, managers.Options{
		Cluster:   c,
		Client:    api,
		Feature:   o.Feature,
		Folder:    folder,
		Log:       cmp.Or(o.OperatorLog, os.DevNull),
		Arguments: []string{"--enable-pprof=" + strconv.FormatBool(o.PprofAddress != ""), "--pprof-addr=" + o.PprofAddress},
	})
	return &operator{process: process{name: o.operator()}, Manager: m}, err
}

// ofOperator returns the operator as the controller of a name, or as all of its controllers and webhooks if the name is empty.
func (b *bench) ofOperator(name string) controller {
	return controller{b.operator.process, b.operator.name + "/" + name}
}

// start starts the process and returns when it is ready.
func (o *operator) start(ctx context.Context) error {
	if err := o.Start(ctx); err != nil {
		return err
	}
	o.pid = o.PID()
	return nil
}

// get returns a page that the operator serves.
func get(ctx context.Context, url string) (code int, text string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", fmt.Errorf("ask %s: %w", url, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", fmt.Errorf("ask %s: %w", url, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

// await polls until ask returns true, at most for the timeout of a run.
func until(ctx context.Context, what string, ask func() (bool, error)) error {
	return awaitEvery(ctx, pollInterval, what, ask)
}

// awaitEvery is await with another interval, for polls that cost more.
func awaitEvery(ctx context.Context, interval time.Duration, what string, ask func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		yes, err := ask()
		if yes {
			return nil
		}
		if err != nil {
			return fmt.Errorf("wait for %s: %w", what, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, ctx.Err())
		case <-ticker.C:
		}
	}
}
