package trace

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/internal/golden"
)

// TestVerdict runs scenarios: each is the dumps of one job in short form and the
// one sentence about them.
//
//	rank R OP#SEQ[:STATE][,DTYPE,COUNT[,REDOP|rootN|peerN]] ...
//	lag R L STATE SEQ [WHAT]      rank R sees rank L
//	at R FUNC FILE:LINE           where rank R's own code stands
//	reason R TEXT
func TestVerdict(t *testing.T) {
	golden.Script(t, "testdata/verdict.txt", func(t *testing.T, c golden.Case) string {
		require.Equal(t, "verdict", c.Cmd)
		size, err := strconv.Atoi(c.Args[0])
		require.NoError(t, err)
		dumps := make([]*Dump, size)
		for _, line := range strings.Split(strings.TrimSpace(c.Input), "\n") {
			script(t, dumps, line)
		}
		var all []*Dump
		for _, d := range dumps {
			if d != nil {
				all = append(all, d)
			}
		}
		v := Verdict(all)
		require.NotContains(t, v, "\n")
		return v + "\n"
	})
}

func script(t *testing.T, dumps []*Dump, line string) {
	f := strings.Fields(line)
	rank, err := strconv.Atoi(f[1])
	require.NoError(t, err)
	d := dumps[rank]
	if d == nil {
		d = &Dump{Version: Version, Group: "world", Rank: rank, Size: len(dumps), Host: "node" + f[1], PID: 100 + rank}
		dumps[rank] = d
	}
	switch f[0] {
	case "rank":
		for _, op := range f[2:] {
			d.Entries = append(d.Entries, entry(t, op))
		}
	case "lag":
		l, err := strconv.Atoi(f[2])
		require.NoError(t, err)
		seq, err := strconv.ParseUint(f[4], 10, 64)
		require.NoError(t, err)
		d.Lags = append(d.Lags, Lag{Rank: l, Host: "node" + f[2], PID: 100 + l, State: strings.ReplaceAll(f[3], "_", " "), Seq: seq, What: strings.Join(f[5:], " ")})
	case "at":
		d.Stacks = fmt.Sprintf("goroutine 7 [running]:\ngithub.com/goccl/goccl/process_group.stacks()\n\t/m/process_group/dump.go:9 +0x1\n\n"+
			"goroutine 1 [sleep]:\ntime.Sleep(0x1)\n\t/usr/lib/go/src/runtime/time.go:9 +0x1\n%s(0x1)\n\t%s +0x2\n", f[2], f[3])
	case "reason":
		d.Reason = strings.Join(f[2:], " ")
	default:
		t.Fatalf("no line %q", line)
	}
}

func entry(t *testing.T, op string) Entry {
	e := Entry{State: Done, Root: -1, DType: "f32", Count: 4}
	for i, part := range strings.Split(op, ",") {
		switch {
		case i == 0:
			name, rest, ok := strings.Cut(part, "#")
			require.True(t, ok, op)
			num, state, ok := strings.Cut(rest, ":")
			if ok {
				e.State = state
			}
			seq, err := strconv.ParseUint(num, 10, 64)
			require.NoError(t, err)
			e.Op, e.Seq = name, seq
			e.P2P = name == "send" || name == "recv"
		case strings.HasPrefix(part, "root"), strings.HasPrefix(part, "peer"):
			r, err := strconv.Atoi(part[4:])
			require.NoError(t, err)
			e.Root = r
		case i == 1:
			e.DType = part
		case i == 2:
			n, err := strconv.ParseInt(part, 10, 64)
			require.NoError(t, err)
			e.Count = n
		default:
			e.Redop = part
		}
	}
	return e
}

func TestSkippedAndStoppedAreToldApart(t *testing.T) {
	build := func(lines ...string) string {
		dumps := make([]*Dump, 2)
		for _, l := range lines {
			script(t, dumps, l)
		}
		return Verdict(dumps)
	}
	skipped := build("rank 0 allreduce#1 allreduce#2:started", "rank 1 allreduce#1", "lag 0 1 running 1")
	stopped := build("rank 0 allreduce#1 allreduce#2:started", "rank 1 allreduce#1", "lag 0 1 stopped 1 SIGSTOP")
	require.NotEqual(t, skipped, stopped)
	require.Contains(t, skipped, "never called allreduce #2")
	require.Contains(t, stopped, "was stopped (SIGSTOP)")
}

func TestUserFrame(t *testing.T) {
	frames := map[string]string{
		"main.main()\n\t/app/main.go:5 +0x1":                                                                    "main.main (/app/main.go:5)",
		"example.com/m/train.(*Loop).step(0xc0, {0x1, 0x2})\n\t/m/train/loop.go:88 +0x1d":                       "train.(*Loop).step (/m/train/loop.go:88)",
		"model.forward[...](0x1)\n\t/home/u/model/f.go:7 +0x3":                                                  "model.forward[...] (/home/u/model/f.go:7)",
		"github.com/goccl/goccl/examples/ddp/train.step(...)\n\t/g/train.go:3":                                  "train.step (/g/train.go:3)",
		"github.com/goccl/goccl/dist.Run(0x1)\n\t/g/dist/run.go:3 +0x3\nmain.run()\n\t/app/r.go:4 +0x1":         "main.run (/app/r.go:4)",
		"net/http.(*conn).serve(0x1)\n\t/usr/lib/go/src/net/http/server.go:2 +0x1":                              "",
		"net/http.(*conn).serve(0x1)\n\tnet/http/server.go:2 +0x1":                                              "",
		"runtime.gopark(0x1)\n\t/go/src/runtime/proc.go:1 +0x1\ncreated by main.main in goroutine 1\n\t/a.go:1": "",
		"no stack": "",
		"":         "",
	}
	for text, want := range frames {
		require.Equal(t, want, UserFrame("goroutine 1 [running]:\n"+text+"\n"), text)
	}
}

func TestSaveAndLoad(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made")
	_, err := Load(dir)
	require.ErrorIs(t, err, goccl.ErrInvalid)
	for r := range 2 {
		path, err := Save(dir, &Dump{Version: Version, Job: "a/b", Group: "tp 0", Rank: 1 - r, Size: 2, Host: "h", Entries: []Entry{{Seq: 9, Op: "allreduce"}}})
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("goccl-a_b-tp_0-rank%d.json", 1-r), filepath.Base(path))
	}
	all, err := Load(dir)
	require.NoError(t, err)
	require.Len(t, all, 2)
	require.Equal(t, 0, all[0].Rank)
	require.EqualValues(t, 9, all[1].Entries[0].Seq)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 2, "no temporary file stays")

	for _, bad := range []string{`{"version":99,"size":1}`, `{"version":1,"size":1,"rank":1}`, `{"version":1,"size":2,"global":[1]}`,
		`{"version":1,"size":1000000000,"rank":3}`, `[`} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "goccl-x-rank9.json"), []byte(bad), 0o644))
		_, err = Load(dir)
		require.ErrorContains(t, err, "rank9.json", bad)
	}
}

func FuzzRead(f *testing.F) {
	var b bytes.Buffer
	require.NoError(f, Write(&b, &Dump{Version: Version, Group: "g", Size: 2, Lags: []Lag{{Rank: 1, State: Stopped}},
		Entries: []Entry{{Seq: 1, Op: "recv", P2P: true, Root: 1, State: Started}, {Seq: 1, Op: "allreduce", State: Failed}}, Stacks: "goroutine 1 [x]:\nmain.f(\n\t/a.go:1"}))
	f.Add(b.Bytes())
	f.Add([]byte(`{"version":1,"size":1000000000,"rank":3}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		require.NotEmpty(t, Verdict([]*Dump{d}))
	})
}
