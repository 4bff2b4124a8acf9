package bootstrap

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// nic is what the selection needs to know of a network interface.
type nic struct {
	name     string
	up       bool
	loopback bool
	addrs    []netip.Addr
}

func systemNICs() ([]nic, error) {
	ifs, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list network interfaces: %w", err)
	}
	nics := make([]nic, 0, len(ifs))
	for _, i := range ifs {
		n := nic{name: i.Name, up: i.Flags&net.FlagUp != 0, loopback: i.Flags&net.FlagLoopback != 0}
		as, _ := i.Addrs() // an interface that vanished meanwhile has none
		for _, a := range as {
			if p, err := netip.ParsePrefix(a.String()); err == nil {
				n.addrs = append(n.addrs, p.Addr().Unmap())
			}
		}
		nics = append(nics, n)
	}
	return nics, nil
}

// filter is a parsed interface list: "eth,ens" keeps names with these prefixes,
// "=eth0" exactly this name, a leading "^" turns the list into an exclusion.
type filter struct {
	spec    string
	words   []string
	exact   bool
	exclude bool
}

func parseFilter(spec string) (filter, error) {
	f := filter{spec: spec}
	rest := strings.TrimSpace(spec)
	if rest == "" {
		return f, nil
	}
	rest, f.exclude = strings.CutPrefix(rest, "^")
	rest, f.exact = strings.CutPrefix(rest, "=")
	for w := range strings.SplitSeq(rest, ",") {
		w = strings.TrimSpace(w)
		if w == "" || strings.ContainsAny(w, "^= *?") {
			return f, fmt.Errorf(`interface list %q: use prefixes like "eth,ens", exact names like "=eth0,eth1", or "^docker,lo" to exclude`, spec)
		}
		f.words = append(f.words, w)
	}
	return f, nil
}

func (f filter) keeps(name string) bool {
	if len(f.words) == 0 {
		return true
	}
	hit := slices.ContainsFunc(f.words, func(w string) bool {
		return name == w || !f.exact && strings.HasPrefix(name, w)
	})
	return hit != f.exclude
}

// Classes of addresses, best first. The root publishes the best class that has
// any; a user's list of interfaces overrides the class of a name.
const (
	classRouted   = iota // an ordinary address
	classBridge          // of a container bridge: the same on many hosts
	classLink            // link-local
	classLoopback        // this machine only
	classNone            // not usable
)

// bridges are interfaces that container and virtual machine managers make; their
// addresses exist on every host alike.
var bridges = []string{"docker", "br-", "virbr", "veth", "cni", "podman", "lxc", "lxd", "flannel", "cali"}

func classify(n nic, a netip.Addr, named bool) int {
	switch {
	case !n.up || !a.IsValid() || a.IsUnspecified() || a.IsMulticast():
		return classNone
	case n.loopback || a.IsLoopback():
		return classLoopback
	case a.IsLinkLocalUnicast():
		return classLink
	case !named && slices.ContainsFunc(bridges, func(p string) bool { return strings.HasPrefix(n.name, p) }):
		return classBridge
	}
	return classRouted
}

// usableAddrs returns the addresses to publish, in the order in which peers should
// try them: prefer first, then IPv4 before IPv6, each in interface order.
func usableAddrs(nics []nic, spec string, prefer netip.Addr) ([]netip.Addr, error) {
	f, err := parseFilter(spec)
	if err != nil {
		return nil, err
	}
	var classes [classNone][]netip.Addr
	for _, n := range nics {
		if !f.keeps(n.name) {
			continue
		}
		named := len(f.words) > 0 && !f.exclude
		for _, a := range n.addrs {
			a = a.WithZone("")
			if c := classify(n, a, named); c < classNone && !slices.Contains(classes[c], a) {
				classes[c] = append(classes[c], a)
			}
		}
	}
	for _, as := range classes {
		if len(as) == 0 {
			continue
		}
		slices.SortStableFunc(as, func(a, b netip.Addr) int { return order(a, prefer) - order(b, prefer) })
		return as, nil
	}
	if spec != "" {
		return nil, fmt.Errorf("no usable address on interfaces %q; this host has %s", spec, describe(nics))
	}
	return nil, fmt.Errorf("no usable address on any interface; this host has %s: bring one up (ip link set lo up is enough for one machine)", describe(nics))
}

func order(a, prefer netip.Addr) int {
	switch {
	case a == prefer:
		return 0
	case a.Is4():
		return 1
	}
	return 2
}

// describe lists interfaces for an error: "lo (down), eth0 (10.0.0.1)".
func describe(nics []nic) string {
	if len(nics) == 0 {
		return "no interfaces"
	}
	var out []string
	for _, n := range nics {
		var what []string
		if !n.up {
			what = append(what, "down")
		}
		for _, a := range n.addrs {
			what = append(what, a.WithZone("").String())
		}
		if len(what) == 0 {
			what = append(what, "no address")
		}
		out = append(out, fmt.Sprintf("%s (%s)", n.name, strings.Join(what, " ")))
	}
	return strings.Join(out, ", ")
}

// families says which IP families have an address here with which to reach other
// hosts, for the error of a rank that could reach none of the root's addresses.
func families(nics []nic) string {
	var v4, v6 bool
	for _, n := range nics {
		for _, a := range n.addrs {
			if n.up && !a.IsLinkLocalUnicast() && !a.IsLoopback() {
				v4, v6 = v4 || a.Is4(), v6 || a.Is6()
			}
		}
	}
	switch {
	case v4 && v6:
		return "IPv4 and IPv6"
	case v4:
		return "IPv4 only"
	case v6:
		return "IPv6 only"
	}
	return "no IP address but loopback or link-local"
}

// routedAddr is the source address the kernel would use towards the outside. It
// sends nothing: connecting a datagram socket only looks up the route.
func routedAddr() netip.Addr {
	c, err := net.Dial("udp4", "192.0.2.1:9")
	if err != nil {
		return netip.Addr{}
	}
	defer c.Close()
	if a, ok := c.LocalAddr().(*net.UDPAddr); ok {
		return a.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}
