package knob

import (
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/internal/golden"
)

// env is a process environment and files in memory.
type env struct {
	vars  []string // KEY=VALUE
	files map[string]string
}

func (e env) lookup(name string) (string, bool) {
	for _, v := range e.vars {
		if k, val, _ := strings.Cut(v, "="); k == name {
			return val, true
		}
	}
	return "", false
}

func (e env) read(name string) ([]byte, error) {
	text, ok := e.files[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	if text == "unreadable" {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return []byte(text), nil
}

func (e env) load() (Settings, []Warning, error) { return Load(e.lookup, e.vars, e.read) }

// Each case gives environment lines and files ("file NAME" up to
// "end"), and expects what was set, warned and refused.
func TestScripts(t *testing.T) {
	golden.Script(t, "testdata/parse.txt", func(t *testing.T, c golden.Case) string {
		e := env{files: map[string]string{}}
		file := ""
		for _, line := range strings.Split(strings.TrimSuffix(c.Input, "\n"), "\n") {
			switch name, isFile := strings.CutPrefix(line, "file "); {
			case isFile:
				file = name
				e.files[file] = ""
			case line == "end":
				file = ""
			case file != "":
				e.files[file] += strings.ReplaceAll(line, `\n`, "\n") + "\n"
			case line != "":
				e.vars = append(e.vars, line)
			}
		}
		s, warnings, err := e.load()
		var b strings.Builder
		for _, g := range s.Given {
			fmt.Fprintf(&b, "set %s to %s by %s\n", g.Name, g.Value, g.Source)
		}
		for _, w := range warnings {
			fmt.Fprintf(&b, "warning: %s\n", w)
		}
		if err != nil {
			require.ErrorIs(t, err, goccl.ErrInvalid)
			fmt.Fprintf(&b, "error: %s\n", strings.ReplaceAll(err.Error(), "\n", "\nerror: "))
		}
		return b.String()
	})
}

func TestParseTypedValues(t *testing.T) {
	e := env{vars: []string{"GOCCL_ALGO=twoshot", "NCCL_PROTO=LL", "GOCCL_TIMEOUT=90s", "NCCL_DEBUG=INFO", "GOCCL_SOCKET_IFNAME=^lo",
		"GOCCL_HOSTID=Node-A", "NCCL_SHM_DISABLE=1", "GOCCL_MAX_CHANNELS=2", "GOCCL_DUMP_DIR=/tmp/d", "GOCCL_PORT_RANGE=4000-4010",
		"GOCCL_DETERMINISTIC=1", "GOCCL_CHUNK_BYTES=64K", "GOCCL_JOB_ID=j7", "GOCCL_LISTEN_FD=5",
		"GOCCL_BACKEND=nccl", "GOCCL_NCCL_LIB=/lib/nccl.so", "GOCCL_SHARE_GPU=1"}}
	s, warnings, err := Parse(e.lookup, e.vars)
	require.NoError(t, err)
	require.Empty(t, warnings)
	require.Len(t, s.Given, len(All()), "a knob has no case in this test")
	var uniform []string
	for _, g := range s.Uniform() {
		uniform = append(uniform, g.Name)
	}
	require.Equal(t, []string{"GOCCL_ALGO", "GOCCL_CHUNK_BYTES", "GOCCL_DETERMINISTIC", "GOCCL_MAX_CHANNELS", "GOCCL_PROTO"}, uniform)
	s.Given = nil
	require.Equal(t, Settings{Algorithm: goccl.TwoShot, Protocol: goccl.LL, Timeout: 90 * time.Second, Debug: slog.LevelInfo,
		SocketIfname: Interfaces{Names: []string{"lo"}, Exclude: true}, HostID: "Node-A", ShmDisable: true, MaxChannels: 2,
		DumpDir: "/tmp/d", PortRange: PortRange{First: 4000, Last: 4010}, Deterministic: true, ChunkBytes: 64 << 10, JobID: "j7", ListenFD: 5,
		Backend: "nccl", NCCLLib: "/lib/nccl.so", ShareGPU: true}, s)
}

func TestEmptyEnvironmentIsDefault(t *testing.T) {
	s, warnings, err := Parse(env{}.lookup, nil)
	require.NoError(t, err)
	require.Empty(t, warnings)
	require.Equal(t, Default(), s)
	require.True(t, s.PortRange.Any())
	require.Empty(t, s.Uniform())
}

// An alias keeps the case of a value where case means something.
func TestAliasKeepsCase(t *testing.T) {
	e := env{vars: []string{"NCCL_HOSTID=Node-A", "NCCL_SOCKET_IFNAME=ETH"}}
	s, _, err := Parse(e.lookup, e.vars)
	require.NoError(t, err)
	require.Equal(t, "Node-A", s.HostID)
	require.Equal(t, []string{"ETH"}, s.SocketIfname.Names)
}

func TestUnreadableFileIsAnError(t *testing.T) {
	e := env{files: map[string]string{systemFile: "unreadable"}}
	_, _, err := e.load()
	require.ErrorIs(t, err, goccl.ErrInvalid)
	require.ErrorIs(t, err, fs.ErrPermission)
}

// Every value that the table calls allowed by name is allowed, and a bad value
// of every knob that can be bad is refused with the allowed ones.
func TestEveryKnobRefusesNonsense(t *testing.T) {
	free := map[string]bool{"GOCCL_BACKEND": true, "GOCCL_NCCL_LIB": true, "GOCCL_DUMP_DIR": true, "GOCCL_HOSTID": true, "GOCCL_JOB_ID": true}
	for _, k := range All() {
		s := Default()
		err := k.set(&s, "=,nonsense=")
		require.Equal(t, free[k.Name], err == nil, k.Name)
		if !strings.ContainsAny(k.Values, ",;-") && !free[k.Name] {
			for _, v := range strings.Fields(k.Values) {
				require.NoError(t, k.set(&s, v), "%s=%s", k.Name, v)
			}
		}
	}
}

func TestByteCounts(t *testing.T) {
	for v, want := range map[string]int{"0": 0, "512": 512, "4k": 4096, "4K": 4096, "2M": 2 << 20, "1G": 1 << 30} {
		n, err := parseBytes(v)
		require.NoError(t, err, v)
		require.Equal(t, want, n, v)
	}
	for _, v := range []string{"", "K", "-1", "2G", "1025M", "99999999999999999999", "1.5K", "4 K"} {
		_, err := parseBytes(v)
		require.Error(t, err, v)
	}
}

func FuzzConfigFile(f *testing.F) {
	f.Add("GOCCL_ALGO=ring\n# c\n\nA = b\n")
	f.Add("=x")
	f.Fuzz(func(t *testing.T, text string) {
		l, err := fileLayer("f", text)
		if err != nil {
			require.ErrorIs(t, err, goccl.ErrInvalid)
			return
		}
		for _, n := range l.names {
			_, ok := l.get(n)
			require.True(t, ok)
			require.Positive(t, l.line(n))
		}
	})
}
