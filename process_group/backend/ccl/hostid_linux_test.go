package ccl_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/process_group/backend/ccl"
)

const printHostID = "GOCCL_TEST_PRINT_HOSTID"

func TestMain(m *testing.M) {
	if os.Getenv(printHostID) != "" {
		host, _ := os.Hostname()
		fmt.Printf("%s %x\n", host, ccl.HostID(""))
		return
	}
	os.Exit(m.Run())
}

// identity runs this program in new namespaces and returns its host name and id.
func identity(t *testing.T, namespaces uintptr) (name, id string) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), printHostID+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces}
	out, err := cmd.Output()
	if err != nil && namespaces != 0 && !strings.Contains(os.Getenv("GOCCL_REQUIRE"), "netns") {
		t.Skipf("no namespaces for this user: %v", err)
	}
	require.NoError(t, err)
	name, id, ok := strings.Cut(strings.TrimSpace(string(out)), " ")
	require.True(t, ok, "%q", out)
	return name, id
}

// C20: the name of a host is no identity. Two containers with one name share no
// memory, and two processes of one host do.
func TestC20EqualNamesAreNotOneHost(t *testing.T) {
	name, here := identity(t, 0)
	require.Equal(t, fmt.Sprintf("%x", ccl.HostID("")), here)
	require.NotEqual(t, "0", here)
	for _, ns := range []uintptr{syscall.CLONE_NEWIPC, syscall.CLONE_NEWNET, syscall.CLONE_NEWPID} {
		other, id := identity(t, ns)
		require.Equal(t, name, other)
		require.NotEqual(t, here, id, "namespace %#x", ns)
	}
	require.Equal(t, ccl.HostID("rack1"), ccl.HostID("rack1"))
	require.NotEqual(t, ccl.HostID("rack1"), ccl.HostID("rack2"))
}
