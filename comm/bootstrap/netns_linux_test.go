package bootstrap

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// needNetns skips where network namespaces cannot be made, unless GOCCL_REQUIRE
// names them.
func needNetns(t *testing.T) {
	t.Helper()
	reason := ""
	if os.Getuid() != 0 {
		reason = "needs root"
	} else if out, err := exec.Command("unshare", "-n", "ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		reason = fmt.Sprintf("cannot make a network namespace: %v: %s", err, out)
	}
	if reason == "" {
		return
	}
	for what := range strings.SplitSeq(os.Getenv("GOCCL_REQUIRE"), ",") {
		if what == "netns" {
			t.Fatal("GOCCL_REQUIRE has netns: " + reason)
		}
	}
	t.Skip(reason)
}

func ip(t *testing.T, args ...string) {
	t.Helper()
	out, err := exec.Command("ip", args...).CombinedOutput()
	require.NoError(t, err, "ip %s: %s", strings.Join(args, " "), out)
}

// twoHosts makes two namespaces joined by a cable, each end named as given, and
// returns a function that runs ip in one of them.
func twoHosts(t *testing.T, nameA, nameB string) (a, b string, in func(ns string, args ...string)) {
	t.Helper()
	needNetns(t)
	a, b = fmt.Sprintf("goccl-a-%d", os.Getpid()), fmt.Sprintf("goccl-b-%d", os.Getpid())
	in = func(ns string, args ...string) { t.Helper(); ip(t, append([]string{"-n", ns}, args...)...) }
	for _, ns := range []string{a, b} {
		ip(t, "netns", "add", ns)
		t.Cleanup(func() { ip(t, "netns", "del", ns) })
		// Duplicate address detection would keep new IPv6 addresses unusable for a second.
		out, err := exec.Command("ip", "netns", "exec", ns, "sh", "-c", "echo 0 > /proc/sys/net/ipv6/conf/default/accept_dad; echo 0 > /proc/sys/net/ipv6/conf/all/accept_dad").CombinedOutput()
		require.NoError(t, err, "%s", out)
		in(ns, "link", "set", "lo", "up")
	}
	ip(t, "link", "add", nameA, "netns", a, "type", "veth", "peer", "name", nameB, "netns", b)
	in(a, "link", "set", nameA, "up")
	in(b, "link", "set", nameB, "up")
	return a, b, in
}

// meet runs a root with rank 0 in namespace a and rank 1 in b, and returns the
// address of rank 1 as the root sees it.
func meet(t *testing.T, a, b string) string {
	t.Helper()
	root := startChild(t, "root", []string{"SIZE=2"}, nil, "ip", "netns", "exec", a)
	id := root.line(t)
	rank := startChild(t, "rank", []string{"ID=" + id, "RANK=1", "SIZE=2"}, nil, "ip", "netns", "exec", b)
	saw := root.line(t)
	require.Equal(t, saw, rank.line(t))
	require.NoError(t, rank.stdin.Close())
	require.NoError(t, root.stdin.Close())
	require.NoError(t, rank.cmd.Wait())
	require.NoError(t, root.cmd.Wait())
	return saw
}

// C01, C02, C04: an interface with an unreachable subnet comes first, a container
// bridge has the same address on both hosts, and the hosts name their cards
// differently.
func TestC01C02UnreachableAndSharedAddresses(t *testing.T) {
	a, b, in := twoHosts(t, "eth0", "ens5")
	in(a, "addr", "add", "10.77.0.1/24", "dev", "eth0")
	in(b, "addr", "add", "10.77.0.2/24", "dev", "ens5")
	for i, ns := range []string{a, b} {
		in(ns, "link", "add", "aaa0", "type", "veth", "peer", "name", "aaa1")
		in(ns, "addr", "add", fmt.Sprintf("192.168.9%d.1/24", i), "dev", "aaa0")
		in(ns, "link", "add", "docker0", "type", "bridge")
		in(ns, "addr", "add", "172.17.0.1/16", "dev", "docker0")
		for _, dev := range []string{"aaa0", "aaa1", "docker0"} {
			in(ns, "link", "set", dev, "up")
		}
	}
	require.Contains(t, meet(t, a, b), "joined 10.77.0.2:")
}

// C07: the hosts share nothing but link-local IPv6; every rank uses its own scope.
func TestC07LinkLocalOnly(t *testing.T) {
	a, b, _ := twoHosts(t, "eth0", "ens5")
	if _, err := os.Stat("/proc/net/if_inet6"); err != nil {
		t.Skip("this kernel has no IPv6")
	}
	require.Contains(t, meet(t, a, b), "joined [fe80::")
}

// C05: one machine with no network: loopback is used, and without it the error
// lists the interfaces.
func TestC05NoNetwork(t *testing.T) {
	needNetns(t)
	c := startChild(t, "alone", nil, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET})
	require.Contains(t, c.line(t), "down: goccl: rank 0: listen: no usable address on any interface; this host has lo (down")
	require.Contains(t, c.line(t), "met at unique id (root 127.0.0.1:")
	require.NoError(t, c.cmd.Wait())
}

// C08: IPv6 is switched off in the kernel; listening on [::] falls back to IPv4.
func TestC08IPv6Disabled(t *testing.T) {
	needNetns(t)
	if _, err := os.Stat("/proc/sys/net/ipv6"); err != nil {
		t.Skip("this kernel has no IPv6 to switch off")
	}
	c := startChild(t, "no-ipv6", nil, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET})
	require.Contains(t, c.line(t), "met at unique id (root 127.0.0.1:")
	require.NoError(t, c.cmd.Wait())
}
