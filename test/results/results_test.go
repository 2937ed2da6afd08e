package results_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/test/results"
)

const printed = `building something
{"Action":"start","Package":"example.com/a"}
{"Action":"run","Package":"example.com/a","Test":"TestGood"}
{"Action":"output","Package":"example.com/a","Test":"TestGood","Output":"chatter\n"}
{"Action":"start","Package":"example.com/b"}
{"Action":"run","Package":"example.com/b","Test":"TestSkipped"}
{"Action":"skip","Package":"example.com/b","Test":"TestSkipped","Elapsed":0}
{"Action":"output","Package":"example.com/b","Output":"PASS\n"}
{"Action":"output","Package":"example.com/b","Output":"ok  \texample.com/b\t0.1s\n"}
{"Action":"pass","Package":"example.com/b","Elapsed":0.1}
{"Action":"pass","Package":"example.com/a","Test":"TestGood","Elapsed":2}
{"Action":"run","Package":"example.com/a","Test":"TestBad"}
{"Action":"run","Package":"example.com/a","Test":"TestBad/part"}
{"Action":"output","Package":"example.com/a","Test":"TestBad/part","Output":"it is bad\n"}
{"Action":"fail","Package":"example.com/a","Test":"TestBad/part","Elapsed":1}
{"Action":"fail","Package":"example.com/a","Test":"TestBad","Elapsed":1}
{"Action":"run","Package":"example.com/a","Test":"TestStuck"}
{"Action":"output","Package":"example.com/a","Test":"TestStuck","Output":"panic: it took too long\n"}
{"Action":"output","Package":"example.com/a","Output":"FAIL\texample.com/a\t4s\n"}
{"Action":"fail","Package":"example.com/a","Elapsed":4}
`

func TestWhatPeopleReadOfARun(t *testing.T) {
	var said, texts []string
	var sum results.Summary
	require.NoError(t, results.Read(strings.NewReader(printed), func(p results.Package) {
		texts = append(texts, p.Text())
		sum.Add(p)
	}, func(line string) { said = append(said, line) }))
	assert.Equal(t, []string{"building something\n"}, said)
	assert.Equal(t, []string{"ok  \texample.com/b\t0.1s\n", "it is bad\npanic: it took too long\nFAIL\texample.com/a\t4s\n"}, texts)
	assert.Equal(t, `the slowest tests:
    2.0 s  example.com/a.TestGood
    1.0 s  example.com/a.TestBad
    0.0 s  example.com/b.TestSkipped
    0.0 s  example.com/a.TestStuck
1 passed, 3 failed, 1 skipped
`, sum.String())
}

func TestARunThatWasStoppedHasFailed(t *testing.T) {
	var sum results.Summary
	require.NoError(t, results.Read(strings.NewReader(`{"Action":"start","Package":"example.com/a"}`), sum.Add, func(string) {}))
	assert.Equal(t, results.Summary{Failed: 1}, sum)
}
