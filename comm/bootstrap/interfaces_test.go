package bootstrap

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

// up makes an interface from "name addr addr ...".
func up(name string, addrs ...string) nic {
	n := nic{name: name, up: true, loopback: name == "lo"}
	for _, a := range addrs {
		n.addrs = append(n.addrs, netip.MustParseAddr(a))
	}
	return n
}

func down(n nic) nic { n.up = false; return n }

func TestUsableAddresses(t *testing.T) {
	lo := up("lo", "127.0.0.1", "::1")
	docker := up("docker0", "172.17.0.1")
	eth := up("eth0", "fe80::1", "10.0.0.5", "2001:db8::5")
	ens := up("ens5", "10.1.0.5")
	for name, c := range map[string]struct {
		nics   []nic
		spec   string
		prefer string
		want   []string
		err    string
	}{
		"ordinary only, IPv4 first":        {nics: []nic{lo, docker, eth}, want: []string{"10.0.0.5", "2001:db8::5"}},
		"C01 the routed one first":         {nics: []nic{up("aaa0", "192.168.9.1"), eth}, prefer: "10.0.0.5", want: []string{"10.0.0.5", "192.168.9.1", "2001:db8::5"}},
		"C02 bridges if nothing else":      {nics: []nic{lo, docker, up("eth0", "169.254.3.4")}, want: []string{"172.17.0.1"}},
		"C02 link-local before loopback":   {nics: []nic{lo, up("eth0", "169.254.3.4")}, want: []string{"169.254.3.4"}},
		"C04 prefixes":                     {nics: []nic{lo, docker, ens}, spec: "eth,ens", want: []string{"10.1.0.5"}},
		"C04 nothing matches":              {nics: []nic{lo, down(ens)}, spec: "eth0", err: `no usable address on interfaces "eth0"; this host has lo (127.0.0.1 ::1), ens5 (down 10.1.0.5)`},
		"C04 exact":                        {nics: []nic{up("eth01", "10.9.0.1"), eth}, spec: "=eth0", want: []string{"10.0.0.5", "2001:db8::5"}},
		"C05 only loopback":                {nics: []nic{lo}, want: []string{"127.0.0.1", "::1"}},
		"C05 not even loopback":            {nics: []nic{down(lo)}, err: "this host has lo (down 127.0.0.1 ::1)"},
		"C07 scopes do not travel":         {nics: []nic{lo, up("eth0", "fe80::1%eth0")}, want: []string{"fe80::1"}},
		"C19 exclusion":                    {nics: []nic{lo, eth, ens}, spec: "^eth", want: []string{"10.1.0.5"}},
		"C19 exclusion keeps bridges away": {nics: []nic{docker, eth, ens}, spec: "^eth", want: []string{"10.1.0.5"}},
		"C19 a bridge that was asked for":  {nics: []nic{docker, eth}, spec: "docker0", want: []string{"172.17.0.1"}},
		"C19 unknown syntax":               {nics: []nic{eth}, spec: "eth*", err: `interface list "eth*"`},
		"C19 empty word":                   {nics: []nic{eth}, spec: "eth0,,ens", err: "interface list"},
		"loopback that was asked for":      {nics: []nic{lo, eth}, spec: "lo", want: []string{"127.0.0.1", "::1"}},
		"one address twice":                {nics: []nic{eth, up("eth0:1", "10.0.0.5")}, want: []string{"10.0.0.5", "2001:db8::5"}},
	} {
		t.Run(name, func(t *testing.T) {
			var prefer netip.Addr
			if c.prefer != "" {
				prefer = netip.MustParseAddr(c.prefer)
			}
			got, err := usableAddrs(c.nics, c.spec, prefer)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			var texts []string
			for _, a := range got {
				texts = append(texts, a.String())
			}
			require.Equal(t, c.want, texts)
		})
	}
}

func TestFamilies(t *testing.T) {
	require.Equal(t, "IPv4 only", families([]nic{up("a", "10.0.0.1", "fe80::1")}))
	require.Equal(t, "IPv6 only", families([]nic{up("a", "2001:db8::1")}))
	require.Equal(t, "IPv4 and IPv6", families([]nic{up("a", "2001:db8::1", "10.0.0.1")}))
	require.Equal(t, "no IP address but loopback or link-local", families([]nic{up("lo", "127.0.0.1"), down(up("a", "10.0.0.1"))}))
}

// C07: a link-local address gets this host's own scopes.
func TestC07ScopesAreOurs(t *testing.T) {
	a := netip.MustParseAddr("fe80::9")
	nics := []nic{up("lo", "::1"), up("eth0", "fe80::1"), up("eth1", "10.0.0.1"), up("eth2", "fe80::2", "fe80::3")}
	require.Equal(t, []netip.Addr{a.WithZone("eth0"), a.WithZone("eth2")}, scoped(a, nics))
	require.Empty(t, scoped(a, nics[:1]))
	v4 := netip.MustParseAddr("10.0.0.9")
	require.Equal(t, []netip.Addr{v4}, scoped(v4, nil))
}
