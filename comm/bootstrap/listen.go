package bootstrap

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/goccl/goccl"
)

// PortRange is an inclusive range of ports to listen on; the zero value lets the
// system choose.
type PortRange struct{ First, Last int }

func (p PortRange) check() error {
	if p == (PortRange{}) {
		return nil
	}
	if p.First < 1 || p.Last > 65535 || p.First > p.Last {
		return fmt.Errorf("port range %d-%d: it must lie in 1-65535 with the first not above the last", p.First, p.Last)
	}
	return nil
}

// keepAlive notices a remote machine that vanished without a word within about 20
// seconds even while nothing is sent.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 5 * time.Second, Count: 3}

// place is what an address text asks for: where to bind and what to publish.
type place struct {
	bind      string       // host to bind; "" is the wildcard
	addrs     []netip.Addr // to publish; empty: whatever the interfaces offer
	name      string       // host name to publish after the addresses
	port      int
	lookedFor string
}

// resolvePlace reads "", ":port", "address:port" or "name:port". A name that means
// only loopback here, as Debian writes it into /etc/hosts, says nothing about how
// others reach this host and is treated as the wildcard; "localhost" is meant.
func resolvePlace(ctx context.Context, addr string, log *slog.Logger) (place, error) {
	if addr == "" {
		addr = ":0"
	}
	host, portText, err := net.SplitHostPort(addr)
	if err != nil {
		return place{}, fmt.Errorf("%w: address %q: want host:port, :port or nothing", goccl.ErrInvalid, addr)
	}
	port, err := net.DefaultResolver.LookupPort(ctx, "tcp", portText)
	if err != nil {
		return place{}, fmt.Errorf("%w: address %q: %v", goccl.ErrInvalid, addr, err)
	}
	p := place{port: port, lookedFor: addr}
	if host == "" {
		return p, nil
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		if !ip.IsUnspecified() {
			p.addrs = []netip.Addr{ip.Unmap()}
		}
		p.bind = host
		return p, nil
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return place{}, fmt.Errorf("resolve %q: %w", host, err)
	}
	for i := range ips {
		ips[i] = ips[i].Unmap()
		if !ips[i].IsLoopback() || host == "localhost" {
			p.addrs = append(p.addrs, ips[i])
		}
	}
	if len(p.addrs) == 0 {
		log.Info("host name means loopback here; publishing the addresses of the interfaces instead", "name", host, "resolves_to", ips)
		return p, nil
	}
	if host != "localhost" {
		p.name = host
	}
	if len(p.addrs) == 1 {
		p.bind = p.addrs[0].String()
	}
	return p, nil
}

// listen opens the root's socket at p, inside the port range if one is given.
func listen(ctx context.Context, p place, ports PortRange, log *slog.Logger) (net.Listener, error) {
	if p.port != 0 || ports == (PortRange{}) {
		l, err := listenPort(ctx, p, p.port, log)
		if isInUse(err) {
			return nil, fmt.Errorf("address %s in use: another process listens there; stop it or choose another port: %w", p.lookedFor, err)
		}
		return l, err
	}
	var err error
	for port := ports.First; port <= ports.Last; port++ {
		var l net.Listener
		if l, err = listenPort(ctx, p, port, log); err == nil {
			return l, nil
		}
		if !isInUse(err) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("no free port in range %d-%d: %w", ports.First, ports.Last, err)
}

func listenPort(ctx context.Context, p place, port int, log *slog.Logger) (net.Listener, error) {
	lc := net.ListenConfig{KeepAliveConfig: keepAlive}
	at := net.JoinHostPort(p.bind, strconv.Itoa(port))
	l, err := lc.Listen(ctx, "tcp", at)
	wild := p.bind == "" || p.bind == "::"
	if err != nil && wild && isFamilyMissing(err) {
		log.Info("IPv6 is not available here; listening on IPv4 only", "error", err)
		l, err = lc.Listen(ctx, "tcp4", net.JoinHostPort("", strconv.Itoa(port)))
	}
	if err != nil {
		return nil, withFileLimit(err)
	}
	return l, nil
}

// published returns the endpoints at which l can be reached.
func published(l net.Listener, p place, spec string) ([]endpoint, error) {
	bound, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return nil, fmt.Errorf("%w: the listener's address is %s %s, not TCP", goccl.ErrUnsupported, l.Addr().Network(), l.Addr())
	}
	port := bound.AddrPort().Port()
	ip := bound.AddrPort().Addr().Unmap()
	addrs := p.addrs
	if len(addrs) == 0 && !ip.IsUnspecified() {
		addrs = []netip.Addr{ip}
	}
	if len(addrs) == 0 {
		nics, err := systemNICs()
		if err != nil {
			return nil, err
		}
		if addrs, err = usableAddrs(nics, spec, routedAddr()); err != nil {
			return nil, err
		}
	}
	var es []endpoint
	for _, a := range addrs {
		if ip.Is4() && a.Is6() {
			continue // the socket does not listen on IPv6
		}
		es = append(es, endpoint{addr: a, port: port})
	}
	if p.name != "" {
		es = append(es, endpoint{name: p.name, port: port})
	}
	if len(es) == 0 {
		return nil, fmt.Errorf("the socket listens on IPv4 only and the chosen interfaces have none of it: %v", addrs)
	}
	return es, nil
}

// withFileLimit adds the limit and the remedy to an error about open files.
func withFileLimit(err error) error {
	if !isTooManyFiles(err) {
		return err
	}
	return fmt.Errorf("too many open files: the limit of this process is %d (ulimit -n); raise it or run fewer ranks in a process: %w", openFileLimit(), err)
}
