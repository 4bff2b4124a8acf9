package bootstrap

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// childRole selects what a copy of the test binary does instead of testing.
const childRole = "GOCCL_BOOTSTRAP_TEST_ROLE"

func TestMain(m *testing.M) {
	roles := map[string]func() error{"rank": childRank, "root": childRoot, "files": childOutOfFiles, "alone": childAlone, "no-ipv6": childWithoutIPv6}
	role := os.Getenv(childRole)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := roles[role](); err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
}

// child is a process of the test binary in some role.
type child struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   *bufio.Reader
}

// startChild runs a role, behind prefix ("ip netns exec x") if there is one. The
// process ends at the latest with the test.
func startChild(t *testing.T, role string, env []string, attr *syscall.SysProcAttr, prefix ...string) *child {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	args := append(prefix, exe)
	c := &child{cmd: exec.Command(args[0], args[1:]...)}
	c.cmd.Env = append(os.Environ(), append(env, childRole+"="+role)...)
	c.cmd.SysProcAttr = attr
	c.cmd.Stderr = os.Stderr
	c.stdin, err = c.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := c.cmd.StdoutPipe()
	require.NoError(t, err)
	c.out = bufio.NewReader(out)
	require.NoError(t, c.cmd.Start())
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill() // most have ended by themselves
		_ = c.cmd.Wait()
	})
	return c
}

// line returns the next line that the child prints.
func (c *child) line(t *testing.T) string {
	t.Helper()
	s, err := c.out.ReadString('\n')
	require.NoError(t, err, "the child ended after %q", s)
	return strings.TrimSpace(s)
}

func childContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), watchdog)
}

// childRank joins as ID, RANK, SIZE say, prints events, and leaves when its input ends.
func childRank() error {
	ctx, cancel := childContext()
	defer cancel()
	var id UniqueID
	if err := id.UnmarshalText([]byte(os.Getenv("ID"))); err != nil {
		return err
	}
	rank, _ := strconv.Atoi(os.Getenv("RANK"))
	size, _ := strconv.Atoi(os.Getenv("SIZE"))
	s, err := Join(ctx, id, Config{Rank: rank, Size: size,
		Status:  func() []byte { return fmt.Appendf(nil, "status of %d", rank) },
		OnEvent: func(e Event) { fmt.Println("event", e.Kind, e.Rank) }})
	if err != nil {
		return err
	}
	fmt.Println("joined", s.Peers()[rank].Addr)
	_, _ = io.Copy(io.Discard, os.Stdin)
	return s.Close()
}

// childRoot opens a root on all interfaces, prints its id, and joins as rank 0.
func childRoot() error {
	ctx, cancel := childContext()
	defer cancel()
	size, _ := strconv.Atoi(os.Getenv("SIZE"))
	root, err := ListenRoot(ctx, "", RootOptions{Size: size})
	if err != nil {
		return err
	}
	text, err := root.ID().MarshalText()
	if err != nil {
		return err
	}
	fmt.Println(string(text))
	served := make(chan error, 1)
	go func() { served <- root.Serve(ctx) }()
	s, err := Join(ctx, root.ID(), Config{Rank: 0, Size: size})
	if err != nil {
		return err
	}
	fmt.Println("joined", s.Peers()[size-1].Addr)
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := s.Close(); err != nil {
		return err
	}
	return <-served
}

// childOutOfFiles uses up its descriptors and prints what a rank and a root say.
func childOutOfFiles() error {
	limit := syscall.Rlimit{Cur: 40, Max: 40}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	refused := make(chan struct{}, 1000)
	root, err := ListenRoot(context.Background(), "127.0.0.1:0", RootOptions{Size: 2, Logger: slog.New(slog.NewTextHandler(signalWriter(refused), nil))})
	if err != nil {
		return err
	}
	root.late = time.Millisecond // nobody will come
	<-refused                    // the line that says where it listens
	ctx, cancel := childContext()
	defer cancel()
	served := make(chan error, 1)
	go func() { served <- root.Serve(ctx) }()
	var hog []*os.File
	for {
		f, err := os.Open(os.DevNull)
		if err != nil {
			break
		}
		hog = append(hog, f)
	}
	_, err = Join(ctx, root.ID(), Config{Rank: 0, Size: 2})
	fmt.Println("rank:", err)
	_ = hog[0].Close() // room for the rank's end of the connection, not for the root's
	joined := make(chan error, 1)
	go func() {
		_, err := Join(ctx, root.ID(), Config{Rank: 0, Size: 2})
		joined <- err
	}()
	<-refused
	cancel()
	fmt.Println("root:", <-served)
	<-joined
	return root.Close()
}

// signalWriter is a log destination that only tells that something was logged.
type signalWriter chan struct{}

func (w signalWriter) Write(b []byte) (int, error) { w <- struct{}{}; return len(b), nil }

// childAlone runs in a network namespace with nothing but a loopback that is down.
func childAlone() error {
	_, err := ListenRoot(context.Background(), "", RootOptions{Size: 2})
	fmt.Println("down:", err)
	if out, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return meetHere("")
}

// childWithoutIPv6 runs in a network namespace in which IPv6 is switched off.
func childWithoutIPv6() error {
	for _, which := range []string{"all", "default", "lo"} {
		if err := os.WriteFile("/proc/sys/net/ipv6/conf/"+which+"/disable_ipv6", []byte("1"), 0); err != nil {
			return err
		}
	}
	if out, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return meetHere("[::]:0")
}

// meetHere lets two ranks meet in this process through a root at addr.
func meetHere(addr string) error {
	ctx, cancel := childContext()
	defer cancel()
	root, err := ListenRoot(ctx, addr, RootOptions{Size: 2})
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- root.Serve(ctx) }()
	for _, err := range each(2, func(rank int) error {
		s, err := Join(ctx, root.ID(), Config{Rank: rank, Size: 2})
		if err != nil {
			return err
		}
		if _, err := s.AllGather(ctx, []byte{byte(rank)}); err != nil {
			return err
		}
		return s.Close()
	}) {
		if err != nil {
			return err
		}
	}
	fmt.Println("met at", root.ID())
	return <-served
}
