package libnccl

import (
	"fmt"
	"strings"

	"github.com/goccl/goccl"
)

// Result is what NCCL's functions return (ncclResult_t).
type Result int32

// The results. InProgress is no failure: a communicator that does not block is
// still at it, and AsyncError says when it is done.
const (
	Success Result = iota
	UnhandledCudaError
	SystemError
	InternalError
	InvalidArgument
	InvalidUsage
	RemoteError
	InProgress
	Timeout
)

var results = [...]struct {
	name, hint string
	is         error
}{
	Success:            {name: "ncclSuccess"},
	UnhandledCudaError: {name: "ncclUnhandledCudaError", hint: "a CUDA call inside NCCL failed: NCCL_DEBUG=WARN names it; look at driver, device memory and visible devices"},
	SystemError: {name: "ncclSystemError", hint: "a socket, shared memory or another library failed: NCCL_DEBUG=WARN names it; look at /dev/shm, " +
		"NCCL_SOCKET_IFNAME and the limits of open files and locked memory"},
	InternalError:   {name: "ncclInternalError", hint: "NCCL broke a promise to itself, often after a peer died: look into the other ranks' logs"},
	InvalidArgument: {name: "ncclInvalidArgument", hint: "NCCL_DEBUG=WARN says which argument", is: goccl.ErrInvalid},
	InvalidUsage: {name: "ncclInvalidUsage", hint: "two ranks on one GPU, or calls of one group that do not go together: NCCL_DEBUG=WARN says which",
		is: goccl.ErrInvalid},
	RemoteError: {name: "ncclRemoteError", hint: "a peer or the network to it is gone: look into that rank's log", is: goccl.ErrPeerLost},
	InProgress:  {name: "ncclInProgress"},
	Timeout:     {name: "ncclTimeout", hint: "NCCL's own time is up", is: goccl.ErrTimeout},
}

// String returns NCCL's name of the result.
func (r Result) String() string {
	if r < 0 || int(r) >= len(results) {
		return fmt.Sprintf("ncclResult(%d)", int32(r))
	}
	return results[r].name
}

// Failed reports whether r is neither success nor still in progress.
func (r Result) Failed() bool { return r != Success && r != InProgress }

// Error is a function of NCCL that failed.
type Error struct {
	Call   string // "ncclAllReduce"
	Result Result
	Text   string // what NCCL calls the result
	Detail string // NCCL's last warning, which may be of another call; may be empty
}

var _ error = (*Error)(nil)

// Error says which call failed, how, and what to look at.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %v", e.Call, e.Result)
	if e.Text != "" {
		fmt.Fprintf(&b, " (%s)", e.Text)
	}
	if e.Detail != "" {
		fmt.Fprintf(&b, ": %s", e.Detail)
	}
	if e.Result >= 0 && int(e.Result) < len(results) && results[e.Result].hint != "" {
		fmt.Fprintf(&b, "; %s", results[e.Result].hint)
	}
	return b.String()
}

// Unwrap returns the kind of failure, nil where none of the sentinels fits.
func (e *Error) Unwrap() error {
	if e.Result < 0 || int(e.Result) >= len(results) {
		return nil
	}
	return results[e.Result].is
}
