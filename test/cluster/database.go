package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// DownKeeping ends the cluster as Down does, and keeps its database in a folder for Options.Database of other clusters.
// The folder must not exist yet. It appears only when it is complete.
func (c *Cluster) DownKeeping(ctx context.Context, folder string) error {
	if err := c.control(ctx, "POST", "/down", nil); err != nil && !errors.Is(err, ErrNotRunning) {
		return fmt.Errorf("end cluster %s: %w", c.Name(), err)
	}
	l := c.state.layout()
	unlock, err := lockFile(ctx, l.lock(), func() {}) // held by the supervisor until all processes have ended
	if err != nil {
		return err
	}
	err = copyDatabase(l.path("etcd"), folder)
	unlock()
	return errors.Join(err, c.Down(ctx))
}

// copyDatabase copies the data of an etcd that is not running.
func copyDatabase(from, to string) error {
	part := to + ".new"
	if err := errors.Join(os.RemoveAll(part), os.MkdirAll(filepath.Dir(to), 0o755)); err != nil {
		return fmt.Errorf("make room for the database: %w", err)
	}
	if err := os.CopyFS(part, os.DirFS(from)); err != nil {
		return fmt.Errorf("copy the database: %w", errors.Join(err, os.RemoveAll(part)))
	}
	if err := os.Rename(part, to); err != nil {
		return fmt.Errorf("keep the database: %w", errors.Join(err, os.RemoveAll(part)))
	}
	return nil
}
