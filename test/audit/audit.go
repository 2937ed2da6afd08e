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
	// User is the user of the client.
	User struct {
		Name string `json:"username"`
	} `json:"user"`
	// UserAgent is the user agent of the client.
	UserAgent string `json:"userAgent"`
	// URI is the path with the query.
	URI string `json:"requestURI"`
	// Received and Answered are the times at which the server received the request and had answered it.
	Received time.Time `json:"requestReceivedTimestamp"`
	Answered time.Time `json:"stageTimestamp"`
	// Object is the object of the request. Its resource is empty for requests without one, such as discovery.
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

// IsWrite reports whether the request is a write. A dry run is not.
func (r Request) IsWrite() bool {
	switch r.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return r.Object.Resource != "" && !strings.Contains(r.URI, "dryRun=")
	}
	return false
}

// Log reads an audit log from the end of the last call on, at first from the beginning.
type Log struct {
	// Path is the log's file.
	Path   string
	offset int64
}

// Skip skips all entries that the log has now.
func (l *Log) Skip() error {
	info, err := os.Stat(l.Path)
	if err != nil {
		return fmt.Errorf("find the audit log: %w", err)
	}
	l.offset = info.Size()
	return nil
}

// Read returns the requests since the last call for which wanted returns true.
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
