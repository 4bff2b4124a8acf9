package dist

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/internal/knob"
)

func lookup(env string) func(string) (string, bool) {
	vars := map[string]string{}
	for _, kv := range strings.Fields(env) {
		k, v, _ := strings.Cut(kv, "=")
		vars[k] = v
	}
	return func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
}

func TestTorchrun(t *testing.T) {
	for _, c := range []struct {
		env  string
		want Identity
		no   bool   // not at work
		err  string // or this
	}{
		{env: "", no: true},
		{env: "MASTER_ADDR=a MASTER_PORT=1 LOCAL_RANK=0", no: true},
		{env: "RANK=1 WORLD_SIZE=4 MASTER_ADDR=node0 MASTER_PORT=29500 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2",
			want: Identity{Rank: 1, Size: 4, LocalRank: 1, LocalSize: 2, Addr: "node0:29500"}},
		{env: "RANK=0 WORLD_SIZE=2 MASTER_ADDR=::1 MASTER_PORT=80", want: Identity{Size: 2, LocalRank: -1, Addr: "[::1]:80"}},
		{env: "RANK=0 WORLD_SIZE=1", want: Identity{Size: 1, LocalRank: -1}},
		{env: "RANK=0", err: "WORLD_SIZE is not set, but RANK is"},
		{env: "WORLD_SIZE=2", err: "RANK is not set, but WORLD_SIZE is"},
		{env: "RANK=1 WORLD_SIZE=2 MASTER_ADDR=a", err: "MASTER_PORT is not set"},
		{env: "RANK=1 WORLD_SIZE=2 MASTER_PORT=1", err: "MASTER_ADDR is not set"},
		{env: "RANK=x WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=1", err: `RANK="x"; want a number`},
		{env: "RANK=1 WORLD_SIZE=0 MASTER_ADDR=a MASTER_PORT=1", err: `WORLD_SIZE="0"; want a number`},
		{env: "RANK=1 WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=65536", err: `MASTER_PORT="65536"; want a number from 1 to 65535`},
		{env: "RANK=1 WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=1 LOCAL_RANK=-1", err: `LOCAL_RANK="-1"`},
		{env: "RANK=1 WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=1 LOCAL_RANK=2 LOCAL_WORLD_SIZE=2", err: "local rank 2 is not below local size 2"},
		{env: "RANK=2 WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=1", err: "rank 2 is not below world size 2 (from RANK and WORLD_SIZE)"},
	} {
		id, ok, err := Torchrun{}.Identify(lookup(c.env))
		if c.err != "" {
			require.ErrorContains(t, err, c.err, c.env)
			require.ErrorIs(t, err, goccl.ErrInvalid, c.env)
			continue
		}
		require.NoError(t, err, c.env)
		require.Equal(t, !c.no, ok, c.env)
		if ok {
			c.want.Source = "RANK and WORLD_SIZE"
		}
		require.Equal(t, c.want, id, c.env)
	}
}

type custom struct{}

func (custom) Identify(lookup func(string) (string, bool)) (Identity, bool, error) {
	_, ok := lookup("MY_RANK")
	return Identity{Rank: 3, Size: 5, Source: "mine"}, ok, nil
}

func TestEnvsAreAskedInOrder(t *testing.T) {
	both := "MY_RANK=3 RANK=0 WORLD_SIZE=1"
	id, err := identify(lookup(both), []Env{custom{}, Torchrun{}})
	require.NoError(t, err)
	require.Equal(t, "mine", id.Source)
	id, err = identify(lookup("RANK=0 WORLD_SIZE=1"), []Env{custom{}, Torchrun{}})
	require.NoError(t, err)
	require.Equal(t, "RANK and WORLD_SIZE", id.Source)
	id, err = identify(lookup("RANK=0 WORLD_SIZE=1"), []Env{custom{}})
	require.NoError(t, err)
	require.Nil(t, id)
}

func TestFromEnvReadsSettings(t *testing.T) {
	for k, v := range map[string]string{"GOCCL_TIMEOUT": "7s", "GOCCL_JOB_ID": "j", "GOCCL_ALGO": "ring", "GOCCL_PROTO": "ll", "GOCCL_SHM_DISABLE": "1",
		"GOCCL_SOCKET_IFNAME": "^docker,veth", "GOCCL_PORT_RANGE": "4000-4010", "GOCCL_HOSTID": "h", "GOCCL_DUMP_DIR": "/d", "GOCCL_MAX_CHANNELS": "2",
		"GOCCL_CHUNK_BYTES": "4K", "GOCCL_DETERMINISTIC": "1", "GOCCL_BACKEND": "nccl", "GOCCL_NCCL_LIB": "/l/nccl.so", "RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "a", "MASTER_PORT": "5"} {
		t.Setenv(k, v)
	}
	c := FromEnv()
	require.NoError(t, c.err)
	require.Equal(t, Identity{Rank: 1, Size: 2, LocalRank: -1, Addr: "a:5", Source: "RANK and WORLD_SIZE"}, *c.Identity)
	require.Equal(t, "7s", c.Timeout.String())
	require.Equal(t, "j", c.Job)
	require.Equal(t, "/d", c.DumpDir)
	require.Equal(t, "nccl", c.Backend)
	require.Equal(t, map[string]string{"nccl.library": "/l/nccl.so"}, c.Options)
	require.True(t, c.Diagnose)
	require.NotNil(t, c.Logger)
	require.Equal(t, Transport{Interfaces: "^docker,veth", PortRange: [2]int{4000, 4010}, HostID: "h", NoShm: true}, c.Transport)
	require.Equal(t, Tuning{Algorithm: goccl.Ring, Protocol: goccl.LL, MaxChannels: 2, ChunkBytes: 4096, Deterministic: true}, c.Tuning)
	require.Equal(t, map[string]string{"GOCCL_ALGO": "ring", "GOCCL_PROTO": "ll", "GOCCL_MAX_CHANNELS": "2", "GOCCL_CHUNK_BYTES": "4096",
		"GOCCL_DETERMINISTIC": "1"}, c.Tuning.settings())
}

// Every setting on which ranks must agree is compared under its own name.
func TestUniformKnobsAreCompared(t *testing.T) {
	all := Tuning{Algorithm: goccl.Ring, Protocol: goccl.LL, MaxChannels: 2, ChunkBytes: 4096, Deterministic: true}.settings()
	for _, k := range knob.All() {
		_, compared := all[k.Name]
		require.Equal(t, k.Uniform, compared, k.Name)
	}
	require.Empty(t, Tuning{}.settings())
}

func TestBadEnvironmentIsAnErrorOfRun(t *testing.T) {
	t.Setenv("GOCCL_ALGO", "rang")
	_, err := Init(t.Context(), FromEnv())
	require.ErrorIs(t, err, goccl.ErrInvalid)
	require.ErrorContains(t, err, `GOCCL_ALGO="rang"`)
	t.Setenv("GOCCL_ALGO", "")
	t.Setenv("RANK", "5")
	t.Setenv("WORLD_SIZE", "2")
	t.Setenv("MASTER_ADDR", "127.0.0.1")
	t.Setenv("MASTER_PORT", "1")
	_, err = Init(t.Context(), FromEnv())
	require.ErrorIs(t, err, goccl.ErrInvalid)
	require.ErrorContains(t, err, "rank 5 is not below world size 2")
}

func TestInterfacesKeepTheirNotation(t *testing.T) {
	for list, each := range map[string][]string{"": nil, "eth,ib": {"eth", "ib"}, "=eth0,eth1": {"=eth0", "=eth1"},
		"^docker,veth": {"^docker", "^veth"}, "^=lo": {"^lo"}} {
		s, _, err := knob.Parse(lookup("GOCCL_SOCKET_IFNAME="+list), nil)
		require.NoError(t, err)
		require.Equal(t, list, interfaces(s.SocketIfname))
		require.Equal(t, each, eachInterface(list), list)
	}
}

func FuzzTorchrun(f *testing.F) {
	f.Add("1", "4", "node0", "29500", "1", "2")
	f.Add("-1", "", "::", "x", "9999999999999999999", "0")
	f.Fuzz(func(t *testing.T, rank, size, addr, port, local, locals string) {
		vars := map[string]string{"RANK": rank, "WORLD_SIZE": size, "MASTER_ADDR": addr, "MASTER_PORT": port, "LOCAL_RANK": local, "LOCAL_WORLD_SIZE": locals}
		id, ok, err := Torchrun{}.Identify(func(name string) (string, bool) { v, ok := vars[name]; return v, ok })
		if err != nil {
			require.ErrorIs(t, err, goccl.ErrInvalid)
			return
		}
		if ok {
			require.NoError(t, id.check())
			require.Less(t, id.Rank, id.Size)
		}
	})
}
