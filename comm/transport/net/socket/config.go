package socket

import (
	"fmt"
	"log/slog"
	"time"
)

// Config says where a transport listens. The zero value listens on the loopback
// interface, which serves ranks of one machine.
type Config struct {
	// Addr is the address to listen on, "host:port". A port of 0 means any, or any
	// of PortRange. Empty: the addresses of Interfaces, or loopback.
	Addr string
	// Interfaces chooses the network interfaces whose addresses peers are told, in
	// this order of preference: each entry is a prefix of a name ("eth"), a whole
	// name ("=eth0") or a prefix to leave out ("^docker"). Only exclusions mean all
	// others but loopback.
	Interfaces []string
	// PortRange bounds the port, both ends included; zero: any.
	PortRange [2]int
	// HandshakeTimeout bounds how long a client of the listener may take to say
	// which connection it is, and each attempt to reach a peer. 0: 10 s.
	HandshakeTimeout time.Duration
	// CloseTimeout bounds how long Close of a sending side waits for what has been
	// posted to leave. 0: 5 s.
	CloseTimeout time.Duration
	// Logger gets refused clients; nil: they are not logged.
	Logger *slog.Logger
}

func (c Config) check() error {
	lo, hi := c.PortRange[0], c.PortRange[1]
	if lo < 0 || hi > 65535 || lo > hi || (lo == 0) != (hi == 0) {
		return fmt.Errorf("port range %d-%d: want two ports of 1 to 65535, or none", lo, hi)
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.HandshakeTimeout <= 0 {
		c.HandshakeTimeout = 10 * time.Second
	}
	if c.CloseTimeout <= 0 {
		c.CloseTimeout = 5 * time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}
