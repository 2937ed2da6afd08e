package scale

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// request is one answered write in the audit log.
type request struct {
	Verb      string    `json:"verb"`
	UserAgent string    `json:"userAgent"`
	Received  time.Time `json:"requestReceivedTimestamp"`
	Answered  time.Time `json:"stageTimestamp"`
	URI       string    `json:"requestURI"`
	Object    struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	Response struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// kind is verb, resource and subresource, such as "patch pods/status".
func (r request) kind() string {
	kind := r.Verb + " " + r.Object.Resource
	if r.Object.Subresource != "" {
		kind += "/" + r.Object.Subresource
	}
	return kind
}

// write says whether the request was meant to change something.
func (r request) write() bool {
	switch r.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return r.Object.Resource != "" && !strings.Contains(r.URI, "dryRun=")
	}
	return false
}

// audit reads an audit log from where its last reader stopped.
type audit struct {
	path   string
	offset int64
}

// skip forgets what is in the log now.
func (a *audit) skip() error {
	info, err := os.Stat(a.path)
	if err != nil {
		return fmt.Errorf("find the audit log: %w", err)
	}
	a.offset = info.Size()
	return nil
}

// writes are the writes since the last call.
func (a *audit) writes() ([]request, error) {
	file, err := os.Open(a.path)
	if err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Seek(a.offset, io.SeekStart); err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	var found []request
	for lines := bufio.NewReaderSize(file, 1<<20); ; {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF { // a line without its end is still being written
			return found, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the audit log: %w", err)
		}
		a.offset += int64(len(line))
		var r request
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("decode a line of the audit log: %w", err)
		}
		if r.write() {
			found = append(found, r)
		}
	}
}

// account adds to the row what everybody wrote after the spec had changed, and apart from that what
// the controller did.
func (row *Row) account(writes []request, changed time.Time, controller string) {
	row.Writes = map[string]int{}
	row.Others = map[string]int{}
	for _, r := range writes {
		name := agent(r.UserAgent)
		if !strings.HasPrefix(name, controller) {
			row.Others[name+": "+r.kind()]++
			continue
		}
		switch r.Object.Resource {
		case "events":
			row.Events++
			continue
		case "leases":
			continue
		case "pods":
			row.time(r, changed)
		}
		row.Writes[r.kind()]++
		if r.Response.Code == http.StatusConflict {
			row.Conflicts++
		}
	}
}

func (row *Row) time(r request, changed time.Time) {
	began, ended := r.Received.Sub(changed).Seconds(), r.Answered.Sub(changed).Seconds()
	if row.LastWrite == 0 || began < row.FirstWrite {
		row.FirstWrite = began
	}
	row.LastWrite = max(row.LastWrite, ended)
	if r.Verb == "create" {
		row.LastCreate = max(row.LastCreate, ended)
	}
}

// agent is the short name of a client: that of its account in the controller manager, else what
// stands before the details.
func agent(userAgent string) string {
	if i := strings.LastIndex(userAgent, "system:serviceaccount:kube-system:"); i >= 0 {
		return userAgent[i+len("system:serviceaccount:kube-system:"):]
	}
	name, _, _ := strings.Cut(userAgent, " ")
	return name
}
