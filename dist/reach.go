package dist

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm"
	"github.com/goccl/goccl/comm/bootstrap"
	"github.com/goccl/goccl/comm/transport/net/socket"
	"github.com/goccl/goccl/dist/store"
)

// bridges are interfaces of containers and virtual machines, whose addresses mean
// nothing on other machines.
var bridges = []string{"^docker", "^virbr", "^veth", "^br-", "^cni"}

// reachStore sets the job's store: the caller's, one that rank 0 serves, or none
// that anybody else needs for a job of one rank.
func (j *Job) reachStore(ctx context.Context) error {
	prefix := "goccl/" + j.cfg.Job + "/"
	switch {
	case j.cfg.Store != nil:
		j.store = store.Prefix(j.cfg.Store, prefix)
		return nil
	case j.Size() == 1:
		own := store.NewMem()
		j.store, j.end = own, func(context.Context) error { return own.Close() }
		return nil
	case j.cfg.Addr == "":
		return fmt.Errorf("goccl: rank %d: init: %w: no address of rank 0 and no store: set MASTER_ADDR and MASTER_PORT, or Config.Addr or Config.Store", j.Rank(), goccl.ErrInvalid)
	case j.Rank() == 0:
		return j.serveStore(ctx, prefix)
	}
	c, err := store.DialTCP(ctx, j.cfg.Addr, store.DialConfig{Job: j.cfg.Job, Name: j.clientName(), Timeout: j.cfg.Timeout, Logger: j.cfg.Logger})
	if err != nil {
		e := goccl.NewError("init", err)
		e.Rank = j.Rank()
		if errors.Is(err, goccl.ErrTimeout) {
			e.Missing = []int{0}
		}
		return e
	}
	j.store = store.Prefix(c, prefix)
	j.end = func(context.Context) error { return c.Close() }
	return nil
}

func (j *Job) clientName() string { return fmt.Sprintf("rank %d, %s", j.Rank(), j.self) }

// serveStore makes this rank the store's server.
func (j *Job) serveStore(ctx context.Context, prefix string) error {
	l := j.cfg.Listener
	if l == nil && j.cfg.inherit != nil {
		var err error
		if l, _, err = j.cfg.inherit(); err != nil {
			return err
		}
	}
	cfg := store.ServerConfig{Job: j.cfg.Job, Clients: j.Size() - 1, Logger: j.cfg.Logger}
	var s *store.Server
	var err error
	if l != nil {
		s, err = store.Serve(l, cfg)
	} else if s, err = store.ListenTCP(ctx, j.listenAddr(), cfg); errors.Is(err, syscall.EADDRINUSE) {
		err = j.portTaken(ctx, err)
	}
	if err != nil {
		return fmt.Errorf("goccl: rank 0 (%s): init: %w", j.self, err)
	}
	j.store = store.Prefix(s.Store(), prefix)
	j.end = s.Shutdown
	return nil
}

// listenAddr is where the store listens. The name under which others reach this
// machine need not be an address of it, so all of them are used unless the job
// stays here.
func (j *Job) listenAddr() string {
	_, port, err := net.SplitHostPort(j.cfg.Addr)
	if err != nil || loopback(j.cfg.Addr) {
		return j.cfg.Addr
	}
	return ":" + port
}

// portTaken finds out whether what has the port is another rank 0 of this job.
func (j *Job) portTaken(ctx context.Context, inUse error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	c, err := store.DialTCP(ctx, j.cfg.Addr, store.DialConfig{Job: j.cfg.Job, Name: "a second " + j.clientName(), Timeout: time.Second})
	if err != nil {
		return inUse
	}
	who, err := c.Get(ctx, "goccl/"+j.cfg.Job+"/who/0")
	if err := errors.Join(err, c.Close()); err != nil {
		return inUse
	}
	return errors.Join(j.taken(string(who)), inUse)
}

// openRoot opens the rendezvous of a group where its ranks can reach it.
func (j *Job) openRoot(ctx context.Context, opt bootstrap.RootOptions) (*comm.Root, error) {
	t := j.cfg.Transport
	opt.PortRange = bootstrap.PortRange{First: t.PortRange[0], Last: t.PortRange[1]}
	opt.Interfaces = t.Interfaces
	if loopback(j.cfg.Addr) && t.Interfaces == "" {
		return comm.ListenRoot(ctx, "127.0.0.1:0", opt)
	}
	return comm.ListenRoot(ctx, "", opt)
}

// sockets says on which addresses this rank can be reached for data: those of the
// chosen interfaces, or the one from which the way to rank 0 leaves.
func (j *Job) sockets() socket.Config {
	t := j.cfg.Transport
	cfg := socket.Config{PortRange: t.PortRange, Logger: j.cfg.Logger}
	switch from := source(j.cfg.Addr); {
	case t.Interfaces != "":
		cfg.Interfaces = eachInterface(t.Interfaces)
	case loopback(j.cfg.Addr):
	case from != "" && !loopback(from):
		cfg.Addr = net.JoinHostPort(from, "0")
	default:
		// The name of this machine leads to its loopback address here, and to
		// another one elsewhere.
		cfg.Interfaces = bridges
	}
	return cfg
}

// source returns the local address from which packets to addr would leave; "" when
// that is not known. It sends nothing.
func source(addr string) string {
	conn, err := net.Dial("udp", addr)
	if err != nil {
		return ""
	}
	defer conn.Close()
	host, _, err := net.SplitHostPort(conn.LocalAddr().String())
	if err != nil {
		return ""
	}
	return host
}

// eachInterface splits a list in NCCL's notation, where a sign before the first
// name is meant for all.
func eachInterface(list string) []string {
	sign := ""
	for _, s := range []string{"^=", "^", "="} {
		if rest, ok := strings.CutPrefix(list, s); ok {
			sign, list = s, rest
			break
		}
	}
	if sign == "^=" {
		sign = "^"
	}
	var out []string
	for _, name := range strings.Split(list, ",") {
		if name = strings.TrimSpace(name); name != "" {
			out = append(out, sign+name)
		}
	}
	return out
}
