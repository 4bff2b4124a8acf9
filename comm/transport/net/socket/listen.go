package socket

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"syscall"
)

// listen opens the listener and returns the addresses to tell peers.
func listen(c Config) (net.Listener, []string, error) {
	host, port, hosts := "127.0.0.1", "0", []string(nil)
	switch {
	case c.Addr != "":
		var err error
		if host, port, err = net.SplitHostPort(c.Addr); err != nil {
			return nil, nil, fmt.Errorf("address %q: %w", c.Addr, err)
		}
	case len(c.Interfaces) > 0:
		host = ""
	}
	if unspecified(host) {
		var err error
		if hosts, err = chosen(c.Interfaces); err != nil {
			return nil, nil, err
		}
	}
	l, err := bind(host, port, c.PortRange)
	if err != nil {
		return nil, nil, err
	}
	_, port, err = net.SplitHostPort(l.Addr().String())
	if err != nil {
		return nil, nil, errors.Join(err, l.Close())
	}
	if hosts == nil {
		hosts = []string{host}
	}
	var addrs []string
	for _, h := range hosts {
		addrs = append(addrs, net.JoinHostPort(h, port))
	}
	return l, addrs, nil
}

func unspecified(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || ip != nil && ip.IsUnspecified()
}

// bind listens on the port, or on the first free one of the range.
func bind(host, port string, within [2]int) (net.Listener, error) {
	if port != "0" || within == [2]int{} {
		return net.Listen("tcp", net.JoinHostPort(host, port))
	}
	var last error
	for p := within[0]; p <= within[1]; p++ {
		l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(p)))
		if err == nil {
			return l, nil
		}
		last = err
		if !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	return nil, fmt.Errorf("no port of the range %d-%d can be had: %w", within[0], within[1], last)
}

// chosen returns the addresses of the interfaces that the entries select, in the
// order of the entries.
func chosen(entries []string) ([]string, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("listing network interfaces: %w", err)
	}
	var names, hosts []string
	up := map[string]net.Interface{}
	for _, i := range all {
		if i.Flags&net.FlagUp != 0 {
			up[i.Name] = i
			names = append(names, i.Name)
		}
	}
	for _, name := range selected(entries, names) {
		i := up[name]
		addrs, err := i.Addrs()
		if err != nil {
			return nil, fmt.Errorf("addresses of %s: %w", name, err)
		}
		hosts = append(hosts, usable(addrs)...)
	}
	if len(hosts) == 0 && len(entries) == 0 {
		return []string{"127.0.0.1"}, nil // a machine without a network
	}
	if len(hosts) == 0 {
		return nil, fmt.Errorf("no usable address on the interfaces chosen by %q; interfaces that are up: %s",
			strings.Join(entries, ","), strings.Join(names, ", "))
	}
	return hosts, nil
}

// selected returns the names that the entries choose, in the order of the
// entries.
func selected(entries, names []string) []string {
	var in, out []string
	for _, e := range entries {
		if rest, ok := strings.CutPrefix(e, "^"); ok {
			out = append(out, rest)
		} else {
			in = append(in, e)
		}
	}
	loopback := len(in) > 0
	if len(in) == 0 {
		in = []string{""}
	}
	var chosen []string
	seen := map[string]bool{}
	for _, e := range in {
		for _, name := range names {
			if seen[name] || !matches(e, name) || (!loopback && (name == "lo" || name == "lo0")) {
				continue
			}
			excluded := false
			for _, o := range out {
				excluded = excluded || matches(o, name)
			}
			if !excluded {
				seen[name] = true
				chosen = append(chosen, name)
			}
		}
	}
	return chosen
}

func matches(entry, name string) bool {
	if whole, ok := strings.CutPrefix(entry, "="); ok {
		return name == whole
	}
	return strings.HasPrefix(name, entry)
}

// usable returns the addresses that peers may dial: link-local ones need a scope
// that only this host knows, and are left out.
func usable(addrs []net.Addr) []string {
	var four, six []string
	for _, a := range addrs {
		n, ok := a.(*net.IPNet)
		switch {
		case !ok || n.IP.IsLinkLocalUnicast() || n.IP.IsMulticast():
		case n.IP.To4() != nil:
			four = append(four, n.IP.String())
		default:
			six = append(six, n.IP.String())
		}
	}
	return append(four, six...)
}
