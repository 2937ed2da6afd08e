package audit

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// Request is one answered request.
type Request struct {
	// Verb is "create", "patch", "list" and so on.
	Verb string `json:"verb"`
	// User says who asked.
	User struct {
		Name string `json:"username"`
	} `json:"user"`
	// UserAgent is what the client calls itself.
	UserAgent string `json:"userAgent"`
	// URI is the path with the query.
	URI string `json:"requestURI"`
	// Received and Answered are when the server had the request and when it had answered.
	Received time.Time `json:"requestReceivedTimestamp"`
	Answered time.Time `json:"stageTimestamp"`
	// Object is what the request was about; its resource is empty for discovery and the like.
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

// Resource returns resource and subresource, such as "pods/status".
func (r Request) Resource() string {
	if r.Object.Subresource == "" {
		return r.Object.Resource
	}
	return r.Object.Resource + "/" + r.Object.Subresource
}

// Kind returns verb, resource and subresource, such as "patch pods/status".
func (r Request) Kind() string { return r.Verb + " " + r.Resource() }

// IsWrite reports whether the request was meant to change something. A dry run is not.
func (r Request) IsWrite() bool {
	switch r.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return r.Object.Resource != "" && !strings.Contains(r.URI, "dryRun=")
	}
	return false
}

// Log reads an audit log from where it stopped last; the zero offset is the log's begin.
type Log struct {
	// Path is the log's file.
	Path   string
	offset int64
}

// Skip forgets what is in the log now.
func (l *Log) Skip() error {
	info, err := os.Stat(l.Path)
	if err != nil {
		return fmt.Errorf("find the audit log: %w", err)
	}
	l.offset = info.Size()
	return nil
}

// Read returns the requests since the last call that are wanted.
func (l *Log) Read(wanted func(Request) bool) ([]Request, error) {
	file, err := os.Open(l.Path)
	if err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Seek(l.offset, io.SeekStart); err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	var found []Request
	for lines := bufio.NewReaderSize(file, 1<<20); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) { // a line without its end is still being written
			return found, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the audit log: %w", err)
		}
		l.offset += int64(len(line))
		var r Request
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("decode a line of the audit log: %w", err)
		}
		if wanted(r) {
			found = append(found, r)
		}
	}
}
