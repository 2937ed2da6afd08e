package scale

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
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

// writes are the writes since the last call by clients whose user agent contains the text.
func (a *audit) writes(userAgent string) ([]request, error) {
	file, err := os.Open(a.path)
	if err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	defer file.Close()
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
		if r.write() && strings.Contains(r.UserAgent, userAgent) {
			found = append(found, r)
		}
	}
}

// account adds to the row what a controller wrote after the spec had changed.
func (row *Row) account(writes []request, changed time.Time) {
	row.Writes = map[string]int{}
	for _, r := range writes {
		switch {
		case r.Response.Code == 409:
			row.Conflicts++
		case r.Object.Resource == "events":
			row.Events++
			continue
		case r.Object.Resource == "leases":
			continue
		}
		row.Writes[r.kind()]++
		if r.Object.Resource != "pods" {
			continue
		}
		if row.FirstWrite == 0 {
			row.FirstWrite = r.Received.Sub(changed).Seconds()
		}
		row.FirstWrite = min(row.FirstWrite, r.Received.Sub(changed).Seconds())
		row.LastWrite = max(row.LastWrite, r.Answered.Sub(changed).Seconds())
		if r.Verb == "create" {
			row.LastCreate = max(row.LastCreate, r.Answered.Sub(changed).Seconds())
		}
	}
}
