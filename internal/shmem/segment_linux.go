package shmem

import (
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/goccl/goccl"
)

// headerBytes is the page before the span: nonce at 0, the rest unused.
const headerBytes = 4096

// seals of a segment: its size never changes, so that no access to a mapping
// of it can fault.
const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL

// Segment is memory without a name that several processes map. It goes away with
// its last mapping, however its processes end.
type Segment struct {
	mem    Mem
	handle []byte
	mapped []byte

	mu sync.Mutex
	fd int // -1 once closed
}

// Create makes a segment of n zeroed bytes, its pages reserved: a lack of memory
// is an error here and never a fault later. name is for /proc/PID/maps. Other
// processes map it with Open as long as this one has neither closed it nor
// called Seal.
func Create(name string, n int) (*Segment, error) {
	if n <= 0 || n > maxBytes {
		return nil, fmt.Errorf("shmem: segment of %d bytes: %w: size out of range", n, goccl.ErrInvalid)
	}
	if err := available(n); err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("shmem: memfd_create: %w%s", err, descriptorHint(err))
	}
	s, err := fill(fd, n)
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("shmem: segment of %d bytes: %w", n, err)
	}
	return s, nil
}

func fill(fd, n int) (*Segment, error) {
	if err := unix.Ftruncate(fd, headerBytes+int64(n)); err != nil {
		return nil, fmt.Errorf("ftruncate: %w", err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		return nil, fmt.Errorf("sealing: %w", err)
	}
	h := handle{pid: os.Getpid(), fd: fd, bytes: n}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, fmt.Errorf("fstat: %w", err)
	}
	h.dev, h.ino = st.Dev, st.Ino
	if _, err := rand.Read(h.nonce[:]); err != nil {
		return nil, err
	}
	mapped, err := mapFile(fd, n)
	if err != nil {
		return nil, err
	}
	if err := populate(fd, mapped); err != nil {
		unix.Munmap(mapped)
		return nil, err
	}
	copy(mapped, h.nonce[:])
	return &Segment{mem: span(mapped), handle: h.encode(), mapped: mapped, fd: fd}, nil
}

func mapFile(fd, n int) ([]byte, error) {
	b, err := unix.Mmap(fd, 0, headerBytes+n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mmap: %w", err)
	}
	const huge = 2 << 20
	if n >= huge {
		// Only a hint: many kernels have no huge pages for shared memory.
		_ = unix.Madvise(b, unix.MADV_HUGEPAGE)
	}
	return b, nil
}

// populate reserves every page: through the mapping, which keeps huge pages
// where there are any, or by fallocate on a kernel before 5.14.
func populate(fd int, mapped []byte) error {
	err := unix.Madvise(mapped, unix.MADV_POPULATE_WRITE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		for {
			err = unix.Fallocate(fd, 0, 0, int64(len(mapped)))
			if !errors.Is(err, unix.EINTR) {
				break
			}
		}
	}
	if err != nil {
		return fmt.Errorf("reserving its pages: %w (memory or the control group's limit is used up)", err)
	}
	return nil
}

func span(mapped []byte) Mem {
	return Mem{base: unsafe.Pointer(&mapped[headerBytes]), n: len(mapped) - headerBytes}
}

// Open maps the segment that the handle of another process of this machine, or
// of this process, names. Nothing in the handle is trusted: the descriptor must
// be a sealed segment of the size, identity and nonce given.
func Open(handle []byte) (*Segment, error) {
	h, err := decodeHandle(handle)
	if err != nil {
		return nil, err
	}
	path := fmt.Sprintf("/proc/%d/fd/%d", h.pid, h.fd)
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, fmt.Errorf("shmem: opening segment %s: %w%s", path, err, openHint(err))
	}
	defer unix.Close(fd)
	if err := verify(fd, h); err != nil {
		return nil, fmt.Errorf("shmem: segment %s: %w", path, err)
	}
	mapped, err := mapFile(fd, h.bytes)
	if err != nil {
		return nil, fmt.Errorf("shmem: segment %s of %d bytes: %w", path, h.bytes, err)
	}
	if [16]byte(mapped[:16]) != h.nonce {
		unix.Munmap(mapped)
		return nil, fmt.Errorf("shmem: segment %s holds another nonce: its process has restarted", path)
	}
	return &Segment{mem: span(mapped), handle: handle, mapped: mapped, fd: -1}, nil
}

func verify(fd int, h handle) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("fstat: %w", err)
	}
	if st.Dev != h.dev || st.Ino != h.ino {
		return errors.New("the descriptor is another file now: its process has closed the segment or restarted")
	}
	if h.bytes > math.MaxInt-headerBytes || st.Size != headerBytes+int64(h.bytes) {
		return fmt.Errorf("it has %d bytes, want %d", st.Size-headerBytes, h.bytes)
	}
	got, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil {
		return fmt.Errorf("reading its seals: %w", err)
	}
	if got&seals != seals {
		return fmt.Errorf("it is not sealed (%#x)", got)
	}
	return nil
}

func descriptorHint(err error) string {
	if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
		return " (too many open files: raise the limit with ulimit -n)"
	}
	return ""
}

func openHint(err error) string {
	switch {
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return " (both ranks must run as one user and be dumpable)"
	case errors.Is(err, unix.ENOENT):
		return " (its process has ended, closed the segment, or lives in another PID namespace)"
	}
	return descriptorHint(err)
}

// Mem returns the span.
func (s *Segment) Mem() Mem { return s.mem }

// Handle returns what Open needs. It stays owned by the segment.
func (s *Segment) Handle() []byte { return s.handle }

// Seal closes the descriptor of the maker, after which no further process can
// map the segment: the mappings that exist stay. Idempotent.
func (s *Segment) Seal() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	fd := s.fd
	s.fd = -1
	if fd < 0 {
		return nil
	}
	return unix.Close(fd)
}

// Close seals the segment and unmaps it here. The span must not be used after
// it. Idempotent.
func (s *Segment) Close() error {
	err := s.Seal()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mapped == nil {
		return err
	}
	err = errors.Join(err, unix.Munmap(s.mapped))
	s.mapped = nil
	return err
}
