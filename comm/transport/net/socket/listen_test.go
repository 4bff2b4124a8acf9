package socket

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestC04SelectedInterfaces(t *testing.T) {
	names := []string{"lo", "docker0", "ens5", "eth0", "eth1", "veth7"}
	tests := []struct {
		entries, want []string
	}{
		{nil, []string{"docker0", "ens5", "eth0", "eth1", "veth7"}},
		{[]string{"eth"}, []string{"eth0", "eth1"}},
		{[]string{"eth", "ens"}, []string{"eth0", "eth1", "ens5"}},
		{[]string{"=eth"}, nil},
		{[]string{"=eth1", "eth"}, []string{"eth1", "eth0"}},
		{[]string{"^docker", "^veth"}, []string{"ens5", "eth0", "eth1"}},
		{[]string{"eth", "^=eth0"}, []string{"eth1"}},
		{[]string{"lo"}, []string{"lo"}},
	}
	for _, test := range tests {
		require.Equal(t, test.want, selected(test.entries, names), "%q", test.entries)
	}
}

func TestC04NoInterfaceNamesWhatThereIs(t *testing.T) {
	_, err := New(Config{Interfaces: []string{"nosuch"}})
	require.ErrorContains(t, err, "nosuch")
	require.ErrorContains(t, err, "lo")
}

func TestC05LoopbackOnly(t *testing.T) {
	tr, err := New(Config{Interfaces: []string{"lo"}})
	require.NoError(t, err)
	defer tr.Close()
	require.NotEmpty(t, tr.Addrs())
	host, _, err := net.SplitHostPort(tr.Addrs()[0])
	require.NoError(t, err)
	require.True(t, loopback(host))
}

func TestC07UsableAddresses(t *testing.T) {
	parse := func(s string) net.Addr {
		ip, n, err := net.ParseCIDR(s)
		require.NoError(t, err)
		n.IP = ip
		return n
	}
	require.Equal(t, []string{"10.1.2.3", "127.0.0.1", "2001:db8::7"}, usable([]net.Addr{
		parse("fe80::1/64"), parse("2001:db8::7/64"), parse("169.254.3.4/16"), parse("10.1.2.3/8"), parse("127.0.0.1/8"), &net.UnixAddr{}}))
}
