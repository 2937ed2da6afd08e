package testenv

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/await"
)

const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

// Request is an answered request in the audit log.
type Request struct {
	// Verb is "create", "patch", "list" and so on.
	Verb string `json:"verb"`
	// UserAgent is the user agent of the client.
	UserAgent string `json:"userAgent"`
	// URI is the path with the query.
	URI string `json:"requestURI"`
	// Object is the object of the request.
	Object struct {
		Group       string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	// Response holds the HTTP status code.
	Response struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// Write reports whether the request is a write. A dry run is not, except for a delete: the log does not show that it
// was a dry run.
func (r Request) Write() bool {
	switch r.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return !strings.Contains(r.URI, "dryRun=")
	}
	return false
}

// String returns verb, resource and subresource, such as "patch pods/status".
func (r Request) String() string {
	if r.Object.Subresource == "" {
		return r.Verb + " " + r.Object.Resource
	}
	return r.Verb + " " + r.Object.Resource + "/" + r.Object.Subresource
}

// Audit reads the audit log of the API server from a point in time.
type Audit struct {
	path      string
	offset    int64
	namespace string // that requests are of; empty for all
	client    client.Client
	marks     atomic.Int64
}

// Audit starts to read the audit log now: requests that were answered before are left out.
func (e *Environment) Audit(t testing.TB) *Audit {
	t.Helper()
	a := &Audit{path: e.audit, client: e.ClientAs(t, "audit-mark")}
	a.settle(t)
	a.offset = a.size(t)
	return a
}

func (a *Audit) size(t testing.TB) int64 {
	t.Helper()
	info, err := os.Stat(a.path)
	require.NoError(t, err)
	return info.Size()
}

// AuditOf is Audit of the requests for objects of one namespace, for tests that run beside others.
func (e *Environment) AuditOf(t testing.TB, namespace string) *Audit {
	t.Helper()
	a := e.Audit(t)
	a.namespace = namespace
	return a
}

// Requests returns the requests for objects since the start, in the order of their answers, from clients whose user
// agent begins with the prefix. Discovery is left out.
func (a *Audit) Requests(t testing.TB, userAgent string) []Request {
	t.Helper()
	a.settle(t)
	all := a.read(t)
	return slices.DeleteFunc(all, func(r Request) bool {
		return r.Object.Resource == "" || !strings.HasPrefix(r.UserAgent, userAgent) || a.namespace != "" && r.Object.Namespace != a.namespace
	})
}

// Writes counts the writes since the start by String, from clients whose user agent begins with the prefix.
func (a *Audit) Writes(t testing.TB, userAgent string) map[string]int {
	t.Helper()
	count := map[string]int{}
	for _, r := range a.Requests(t, userAgent) {
		if r.Write() {
			count[r.String()]++
		}
	}
	return count
}

// Done is Writes without what the server refused, such as a write on a version that is old.
func (a *Audit) Done(t testing.TB, userAgent string) map[string]int {
	t.Helper()
	count := map[string]int{}
	for _, r := range a.Requests(t, userAgent) {
		if r.Write() && r.Response.Code < http.StatusMultipleChoices {
			count[r.String()]++
		}
	}
	return count
}

// Kinds returns the distinct String values of the writes in the namespace since the start, from clients whose user
// agent begins with the prefix.
func (a *Audit) Kinds(t testing.TB, userAgent, namespace string) []string {
	t.Helper()
	var kinds []string
	for _, r := range a.Requests(t, userAgent) {
		if r.Write() && r.Object.Namespace == namespace && !slices.Contains(kinds, r.String()) {
			kinds = append(kinds, r.String())
		}
	}
	return kinds
}

// settle makes a request and waits until the log has it, because the server writes an entry after it has answered.
func (a *Audit) settle(t testing.TB) {
	t.Helper()
	name := fmt.Sprintf("mark-%d-%d", time.Now().UnixNano(), a.marks.Add(1))
	from := a.size(t)
	_ = a.client.Get(t.Context(), client.ObjectKey{Name: name}, &corev1.Namespace{})
	await.Until(t, func(check *assert.CollectT) {
		assert.Contains(check, string(a.linesFrom(t, from)), name)
	}, "the audit log does not show the last request")
}

// linesFrom returns the finished lines of the log from the offset on.
func (a *Audit) linesFrom(t testing.TB, offset int64) []byte {
	t.Helper()
	file, err := os.Open(a.path)
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	_, err = file.Seek(offset, io.SeekStart)
	require.NoError(t, err)
	text, err := io.ReadAll(file)
	require.NoError(t, err)
	return text[:bytes.LastIndexByte(text, '\n')+1] // an unfinished last line is read next time
}

func (a *Audit) read(t testing.TB) []Request {
	t.Helper()
	var requests []Request
	for line := range bytes.Lines(a.linesFrom(t, a.offset)) {
		var r Request
		require.NoError(t, json.Unmarshal(line, &r))
		requests = append(requests, r)
	}
	return requests
}
