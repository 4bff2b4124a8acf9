package bootstrap

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/comm/wire"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// TestHubScripts runs testdata/hub/*.txt: lines at the margin are inputs, indented
// ones the effects that they must have. After an intended change run with -rewrite
// and read the difference.
func TestHubScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/hub/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(f)
			require.NoError(t, err)
			got := runHubScript(t, string(want))
			if *rewrite {
				require.NoError(t, os.WriteFile(f, []byte(got), 0o644))
				return
			}
			require.Equal(t, string(want), got)
		})
	}
}

func runHubScript(t *testing.T, script string) string {
	t.Helper()
	var h *hub
	var b strings.Builder
	for line := range strings.Lines(script) {
		text := strings.TrimRight(line, "\n")
		if strings.HasPrefix(text, " ") {
			continue
		}
		fmt.Fprintln(&b, text)
		words := strings.Fields(text)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		args := map[string]string{}
		for _, w := range words[1:] {
			k, v, _ := strings.Cut(w, "=")
			args[k] = strings.ReplaceAll(v, "_", " ")
		}
		if words[0] == "hub" {
			linger, _ := time.ParseDuration(args["linger"])
			h = newHub(num(args["size"]), linger)
			continue
		}
		hubInput(t, h, words, args)
		for _, e := range h.take() {
			fmt.Fprintln(&b, "    "+showEffect(e))
		}
		if h.done {
			fmt.Fprintf(&b, "    done: %v\n", h.err)
		}
	}
	return b.String()
}

func num(s string) int { n, _ := strconv.Atoi(s); return n }

func hubInput(t *testing.T, h *hub, words []string, args map[string]string) {
	t.Helper()
	conn := 0
	if len(words) > 1 {
		conn = num(strings.TrimPrefix(words[1], "c"))
	}
	seq := uint64(num(args["seq"]))
	ops := map[string]wire.Op{"gather": wire.OpAllGather, "barrier": wire.OpBarrier, "monitored": wire.OpMonitoredBarrier}
	switch words[0] {
	case "hello":
		h.hello(conn, wire.Hello{Rank: num(args["rank"]), Size: num(args["size"]), PID: num(args["pid"]), Host: args["host"],
			Failure: args["failure"], Info: []byte(args["info"])}, "10.0.0."+strconv.Itoa(conn)+":999", wire.Accept{})
	case "gather", "barrier", "monitored":
		h.receive(conn, wire.Put{Seq: seq, Op: ops[words[0]], Data: []byte(args["data"])})
	case "expire":
		h.receive(conn, wire.Expire{Seq: seq})
	case "relay":
		h.receive(conn, wire.Relay{Rank: num(args["to"]), Tag: uint64(num(args["tag"])), Data: []byte(args["data"])})
	case "query":
		h.receive(conn, wire.Query{Rank: -1, Token: uint64(num(args["token"]))})
	case "status":
		h.receive(conn, wire.Status{Rank: num(args["to"]), Token: uint64(num(args["token"])), Data: []byte(args["data"])})
	case "fail":
		h.receive(conn, wire.Fail{Text: args["text"]})
	case "bye":
		h.receive(conn, wire.Bye{})
	case "ping":
		h.receive(conn, wire.Ping{})
	case "roster":
		h.receive(conn, wire.Roster{})
	case "drop":
		h.drop(conn, args["why"])
	case "deadline":
		h.joinTimeout("the root's deadline passed")
	case "elapsed":
		h.elapsed()
	case "shut":
		h.shut(errors.New("closed by the user"))
	default:
		t.Fatalf("unknown input %q", words[0])
	}
}

func showEffect(e effect) string {
	if e.timer > 0 {
		return "timer " + e.timer.String()
	}
	var to []string
	for _, c := range e.to {
		to = append(to, "c"+strconv.Itoa(c))
	}
	who := strings.Join(to, " ") + ": "
	if e.hangup {
		return who + "hang up"
	}
	switch m := e.msg.(type) {
	case wire.Accept:
		return who + "accept"
	case wire.Refuse:
		return fmt.Sprintf("%srefuse %v rank %d missing %v: %s", who, m.Code, m.Rank, m.Missing, m.Text)
	case wire.Roster:
		var ms []string
		for r, p := range m.Members {
			ms = append(ms, fmt.Sprintf("%d=%s/%d@%s %q", r, p.Host, p.PID, p.Addr, p.Info))
		}
		return who + "roster " + strings.Join(ms, ", ")
	case wire.All:
		return fmt.Sprintf("%sall #%d %q", who, m.Seq, m.Parts)
	case wire.End:
		return fmt.Sprintf("%send #%d %v rank %d missing %v: %s", who, m.Seq, m.Code, m.Rank, m.Missing, m.Text)
	case wire.Event:
		return fmt.Sprintf("%sevent %v rank %d: %s", who, m.What, m.Rank, m.Text)
	}
	return fmt.Sprintf("%s%v %+v", who, e.msg.Kind(), e.msg)
}

func joinedHub(n int) *hub {
	h := newHub(n, 0)
	for r := range n {
		h.hello(r+1, wire.Hello{Rank: r, Size: n, PID: 100 + r, Host: "h"}, "addr", wire.Accept{})
	}
	h.take()
	return h
}

func TestHubForgetsWhatIsOver(t *testing.T) {
	h := joinedHub(3)
	for seq := uint64(1); seq <= 500; seq++ {
		for c := 1; c <= 3; c++ {
			h.receive(c, wire.Put{Seq: seq, Op: wire.OpBarrier})
		}
	}
	h.receive(3, wire.Bye{})
	for seq := uint64(501); seq <= 1000; seq++ {
		h.receive(1, wire.Put{Seq: seq, Op: wire.OpBarrier})
		h.receive(2, wire.Put{Seq: seq, Op: wire.OpBarrier})
	}
	require.Empty(t, h.open)
	require.False(t, h.done)
}

func TestHubRefusesResultsThatFitNoFrame(t *testing.T) {
	const n = 70
	h := joinedHub(n)
	part := make([]byte, wire.MaxData)
	for c := 1; c <= n; c++ {
		h.receive(c, wire.Put{Seq: 1, Op: wire.OpAllGather, Data: part})
	}
	out := h.take()
	require.Len(t, out, 1)
	require.Equal(t, wire.CodeTooLarge, out[0].msg.(wire.End).Code)
	require.Len(t, out[0].to, n)
	require.Empty(t, h.open)
}

func TestHubBoundsHowFarARankRunsAhead(t *testing.T) {
	h := joinedHub(2)
	for seq := uint64(1); seq <= maxOpen+1; seq++ {
		h.receive(1, wire.Put{Seq: seq, Op: wire.OpBarrier})
	}
	require.Equal(t, lost, h.members[0].state)
	require.Contains(t, h.members[0].cause, "ahead")
}

// FuzzHub feeds the hub any sequence of messages: it must neither panic nor talk
// to a connection that it has hung up.
func FuzzHub(f *testing.F) {
	f.Add([]byte{0, 1, 1, 1, 2, 1, 3, 2, 4, 3, 5, 1})
	f.Add([]byte{0, 0, 8, 0, 1, 0, 7, 0, 8, 1, 9, 2})
	f.Fuzz(func(t *testing.T, script []byte) {
		const n = 3
		h := newHub(n, time.Second)
		closed := map[int]bool{}
		for i := 0; i+1 < len(script) && !h.done; i += 2 {
			conn, arg := 1+int(script[i+1]>>4)%5, int(script[i+1])
			switch script[i] % 12 {
			case 0, 1:
				if h.conns[conn] == nil && !closed[conn] {
					h.hello(conn, wire.Hello{Rank: arg % 4, Size: n, Host: "h", PID: conn}, "a", wire.Accept{})
				}
			case 2:
				if m := h.conns[conn]; m != nil {
					h.receive(conn, wire.Put{Seq: m.puts + 1, Op: wire.Op(1 + arg%3), Data: script[i:]})
				}
			case 3:
				h.receive(conn, wire.Put{Seq: uint64(arg), Op: wire.OpBarrier})
			case 4:
				h.receive(conn, wire.Expire{Seq: uint64(arg % 4)})
			case 5:
				h.receive(conn, wire.Relay{Rank: arg%5 - 1})
			case 6:
				h.receive(conn, wire.Query{Token: uint64(arg)})
			case 7:
				h.receive(conn, wire.Fail{Text: "f"})
			case 8:
				h.receive(conn, wire.Bye{})
			case 9:
				h.drop(conn, "gone")
			case 10:
				h.receive(conn, wire.Status{Rank: arg % 5})
			case 11:
				if arg%16 == 15 {
					h.elapsed()
				} else {
					h.joinTimeout("late")
				}
			}
			for _, e := range h.take() {
				for _, c := range e.to {
					require.False(t, closed[c], "effect for a connection that was hung up: %v", e)
					closed[c] = e.hangup
				}
			}
		}
	})
}
