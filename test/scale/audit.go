package scale

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/flotilla-project/flotilla/test/audit"
)

// account adds the writes after the change of the spec to the row, those of the controller apart from others.
func (row *Row) account(writes []audit.Request, changed time.Time, controller string) {
	row.Writes = map[string]int{}
	row.Others = map[string]int{}
	for _, r := range writes {
		name := agent(r.UserAgent)
		if !strings.HasPrefix(name, controller) {
			row.Others[name+": "+r.Kind()]++
			continue
		}
		switch r.Object.Resource {
		case "events":
			row.Events++
			continue
		case "leases":
			continue
		case row.resource():
			row.time(r, changed)
		}
		row.Writes[r.Kind()]++
		if r.Response.Code == http.StatusConflict {
			row.Conflicts++
		}
	}
}

func onlyWrites(requests []audit.Request) []audit.Request {
	return slices.DeleteFunc(slices.Clone(requests), func(r audit.Request) bool { return !r.IsWrite() })
}

// reads counts the reads of a controller from the server, except those of Leases.
func reads(requests []audit.Request, controller string) map[string]int {
	count := map[string]int{}
	for _, r := range requests {
		isRead := r.Verb == "get" || r.Verb == "list" || r.Verb == "watch"
		if isRead && strings.HasPrefix(r.UserAgent, controller) && r.Object.Resource != "leases" {
			count[r.Kind()]++
		}
	}
	return count
}

func (row *Row) time(r audit.Request, changed time.Time) {
	began := r.Received.Sub(changed).Seconds()
	ended := r.Answered.Sub(changed).Seconds()
	if row.LastWrite == 0 || began < row.FirstWrite {
		row.FirstWrite = began
	}
	row.LastWrite = max(row.LastWrite, ended)
	if r.Verb == "create" {
		row.LastCreate = max(row.LastCreate, ended)
	}
}

// agent returns the short name of a client: the name of its account in the controller manager, otherwise the part of
// its user agent before the details.
func agent(userAgent string) string {
	if i := strings.LastIndex(userAgent, "system:serviceaccount:kube-system:"); i >= 0 {
		return userAgent[i+len("system:serviceaccount:kube-system:"):]
	}
	name, _, _ := strings.Cut(userAgent, " ")
	return name
}
