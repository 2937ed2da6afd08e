package testenv

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	uberzap "go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/flotilla-project/flotilla/core/testing/bundle"
)

// operatorLog is all that the operators of one test log.
type operatorLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements zapcore.WriteSyncer.
func (l *operatorLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// Sync implements zapcore.WriteSyncer.
func (l *operatorLog) Sync() error { return nil }

// logger returns a logger for an operator of the test: errors go to standard error, and everything to the test's bundle.
func (e *Environment) logger(t testing.TB) logr.Logger {
	t.Helper()
	e.tests.mu.Lock()
	defer e.tests.mu.Unlock()
	kept := e.tests.logs[t]
	if kept == nil {
		kept = &operatorLog{}
		e.tests.logs[t] = kept
	}
	all := zapcore.NewCore(zapcore.NewConsoleEncoder(uberzap.NewDevelopmentEncoderConfig()), kept, zapcore.DebugLevel)
	return zap.New(zap.UseDevMode(true), zap.Level(zapErrorLevel), zap.RawZapOpts(uberzap.WrapCore(func(errors zapcore.Core) zapcore.Core {
		return zapcore.NewTee(errors, all)
	})))
}

// bundle keeps the objects of the namespace and what the operators of the test have logged, and returns the folder.
func (e *Environment) bundle(ctx context.Context, t testing.TB, namespace string) (folder string, err error) {
	t.Helper()
	folder, err = bundle.Folder(t)
	if err != nil {
		return "", err
	}
	err = bundle.Write(ctx, e.cleaner, namespace, folder)
	e.tests.mu.Lock()
	kept := e.tests.logs[t]
	e.tests.mu.Unlock()
	if kept == nil {
		return folder, err
	}
	kept.mu.Lock()
	defer kept.mu.Unlock()
	return folder, errors.Join(err, os.WriteFile(filepath.Join(folder, "operators.log"), kept.text.Bytes(), 0o600))
}
