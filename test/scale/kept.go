package scale

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/flotilla-project/flotilla/test/cluster"
)

// kept returns the folder of a database that fill has made, in an earlier run or now in a new cluster. The folder is in
// the cache, and its name depends on name and made.
func (o Options) kept(ctx context.Context, name string, made any, fill func(context.Context, *bench) error) (folder string, err error) {
	text, err := json.Marshal([]any{cluster.DefaultKubernetes, made})
	if err != nil {
		return "", fmt.Errorf("name database %s: %w", name, err)
	}
	cache, err := cluster.CacheFolder("")
	if err != nil {
		return "", err
	}
	folder = filepath.Join(cache, "databases", fmt.Sprintf("%s-%x", name, sha256.Sum256(text))[:len(name)+11])
	if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
		return folder, err
	}
	fmt.Fprintf(o.Progress, "making database %s, once\n", filepath.Base(folder))
	b, end, err := o.open(ctx, "")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, end()) }()
	if err := fill(ctx, b); err != nil {
		return "", fmt.Errorf("make database %s: %w", name, err)
	}
	return folder, b.cluster.DownKeeping(ctx, folder)
}

// open starts a cluster, with a kept database or an empty one, and connects to it. The function it returns stops the
// cluster and all processes beside it.
func (o Options) open(ctx context.Context, database string) (b *bench, end func() error, err error) {
	options := cluster.Options{
		Name:      cmp.Or(o.cluster, clusterName),
		Simulated: true,
		Nodes:     cluster.NoNodes,
		NodeGrace: nodeGrace,
		Out:       o.Progress,
		Database:  database,
	}
	if err := cluster.Remove(ctx, options); err != nil && !errors.Is(err, cluster.ErrNotRunning) {
		return nil, nil, fmt.Errorf("remove what an earlier run left: %w", err)
	}
	c, err := cluster.Start(ctx, options)
	if err != nil {
		return nil, nil, fmt.Errorf("start the cluster: %w", err)
	}
	b = &bench{
		Options:   o,
		cluster:   c,
		stopNodes: func() {},
		operator:  &operator{},
	}
	end = func() error {
		ended := b.operator.Stop()
		b.stopNodes()
		return errors.Join(ended, c.Down(context.WithoutCancel(ctx)), os.RemoveAll(b.folder))
	}
	if b.folder, err = os.MkdirTemp("", clusterName); err == nil {
		err = b.connect()
	}
	if err != nil {
		return nil, nil, errors.Join(err, end())
	}
	return b, end, nil
}
