package dist

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/goccl/goccl"
)

// Torchrun reads the variables that gocclrun, torchrun and many schedulers set:
// RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, and LOCAL_RANK and
// LOCAL_WORLD_SIZE where they are. It is at work when RANK or WORLD_SIZE is set.
type Torchrun struct{}

var _ Env = Torchrun{}

// Identify implements Env. A variable that is missing or no number is an error
// that names it.
func (Torchrun) Identify(lookup func(string) (string, bool)) (Identity, bool, error) {
	get := func(name string) string { v, _ := lookup(name); return strings.TrimSpace(v) }
	if get("RANK") == "" && get("WORLD_SIZE") == "" {
		return Identity{}, false, nil
	}
	id := Identity{LocalRank: -1, Source: "RANK and WORLD_SIZE"}
	var err error
	number := func(name string, must bool, fallback, low, high int) int {
		v := get(name)
		n, bad := strconv.Atoi(v)
		switch {
		case err != nil || v == "" && !must:
			return fallback
		case v == "":
			err = fmt.Errorf("goccl: %w: %s is not set, but %s is; a rank needs RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT", goccl.ErrInvalid, name, other(name))
		case bad != nil || n < low || n > high:
			err = fmt.Errorf("goccl: %w: %s=%q; want a number from %d to %d", goccl.ErrInvalid, name, v, low, high)
		}
		return n
	}
	const most = 1 << 24
	id.Size = number("WORLD_SIZE", true, 0, 1, most)
	id.Rank = number("RANK", true, 0, 0, most)
	id.LocalRank = number("LOCAL_RANK", false, -1, 0, most)
	id.LocalSize = number("LOCAL_WORLD_SIZE", false, 0, 1, most)
	if id.Size > 1 {
		port := number("MASTER_PORT", true, 0, 1, 65535)
		host := get("MASTER_ADDR")
		if err == nil && host == "" {
			err = fmt.Errorf("goccl: %w: MASTER_ADDR is not set, but RANK is; it is the name or address of rank 0's machine", goccl.ErrInvalid)
		}
		id.Addr = net.JoinHostPort(host, strconv.Itoa(port))
	}
	if err == nil {
		err = id.check()
	}
	if err != nil {
		return Identity{}, true, err
	}
	return id, true, nil
}

// other names a variable by which the launcher was recognised.
func other(missing string) string {
	if missing == "RANK" {
		return "WORLD_SIZE"
	}
	return "RANK"
}
