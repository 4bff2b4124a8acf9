package gpu_test

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/comm/exec/gpu"
	"github.com/goccl/goccl/comm/exec/gpu/gputest"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/internal/leak"
)

// emulator is a process that runs the kernels' own sources on the CPU, for all ranks
// of a test; testdata/emulator says how.
type emulator struct {
	t       testing.TB
	in      *bufio.Writer
	out     *bufio.Reader
	streams []*emuStream
	live    map[uintptr]bool
	// How the next run goes.
	most       uint64 // turns; 0: many
	abortAfter uint64 // turns between the aborts of one rank and of the next; 0: none
}

var _ gputest.Machine = (*emulator)(nil)

const emulatedKernels = "NAME(interp_ll_copy) NAME(interp_ll_sum_f32) NAME(interp_ll_sum_bf16) NAME(interp_simple_copy) NAME(interp_simple_sum_f32) NAME(interp_simple_sum_bf16) NAME(fused_ll_gather) NAME(fused_ll_sum_f32) NAME(fused_ll_sum_bf16)"

// copySources copies kernels and emulator to dir. What this process reads, the go
// command takes into account when it remembers results; what g++ reads, it does not.
func copySources(dir string) error {
	for from, to := range map[string]string{"../../../device/kernels": "kernels", "testdata/emulator": "emulator"} {
		if err := os.CopyFS(filepath.Join(dir, to), os.DirFS(from)); err != nil {
			return err
		}
	}
	return nil
}

// compileEmulator compiles the kernels in dir for the CPU and returns the program.
func compileEmulator(dir string, flags ...string) (string, error) {
	bin := filepath.Join(dir, "run")
	args := append([]string{"-std=c++17", "-U_FORTIFY_SOURCE", "-ffp-contract=off", "-Wall", "-Wno-unknown-pragmas", "-DKERNELS=" + emulatedKernels,
		"-I", filepath.Join(dir, "kernels"), "-I", dir, "-o", bin}, flags...)
	out, err := exec.Command("g++", append(args, filepath.Join(dir, "emulator", "main.cc"))...).CombinedOutput()
	if err != nil || len(out) > 0 {
		return bin, fmt.Errorf("g++: %v\n%s", err, out)
	}
	return bin, nil
}

// emulatorProgram is the program of the kernels as they are, made once.
var emulatorProgram = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "goccl-emulator-")
	if err != nil {
		return "", err
	}
	if err := copySources(dir); err != nil {
		return "", err
	}
	return compileEmulator(dir, "-O1", "-fsanitize=alignment", "-fsanitize-undefined-trap-on-error")
})

func TestMain(m *testing.M) {
	code := leak.Check(m)
	if _, err := exec.LookPath("g++"); err == nil {
		if bin, _ := emulatorProgram(); bin != "" {
			_ = os.RemoveAll(filepath.Dir(bin)) // the system cleans its folder of temporary files as well
		}
	}
	os.Exit(code)
}

// newEmulator starts the process with a stream for each of n ranks.
func newEmulator(t testing.TB, n int) *emulator {
	t.Helper()
	needCompiler(t)
	bin, err := emulatorProgram()
	require.NoError(t, err)
	return startEmulator(t, bin, n)
}

func needCompiler(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("g++"); err != nil {
		t.Skip("there is no g++ to compile kernels for the CPU")
	}
}

func startEmulator(t testing.TB, bin string, n int) *emulator {
	t.Helper()
	cmd := exec.Command(bin)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	e := &emulator{t: t, in: bufio.NewWriter(in), out: bufio.NewReader(out), live: map[uintptr]bool{}}
	t.Cleanup(func() {
		if !t.Failed() {
			require.Empty(t, e.live, "memory that was not freed")
		}
		_ = in.Close()
		err := cmd.Wait()
		if err != nil || stderr.Len() > 0 {
			t.Errorf("the emulator ended with %v: %s", err, stderr.String())
		}
	})
	for range n {
		e.streams = append(e.streams, &emuStream{e: e})
	}
	return e
}

func (e *emulator) say(c byte, numbers ...uint64) {
	require.NoError(e.t, e.in.WriteByte(c))
	for _, n := range numbers {
		e.number(n)
	}
}

func (e *emulator) number(n uint64) {
	_, err := e.in.Write(binary.LittleEndian.AppendUint64(nil, n))
	require.NoError(e.t, err)
}

func (e *emulator) bytes(b []byte) {
	_, err := e.in.Write(b)
	require.NoError(e.t, err)
}

func (e *emulator) hear(b []byte) {
	require.NoError(e.t, e.in.Flush())
	_, err := io.ReadFull(e.out, b)
	require.NoError(e.t, err)
}

func (e *emulator) heard() uint64 {
	var b [8]byte
	e.hear(b[:])
	return binary.LittleEndian.Uint64(b[:])
}

func (e *emulator) write(p uintptr, b []byte) {
	e.say('W', uint64(p), uint64(len(b)))
	e.bytes(b)
}

// Read implements gputest.Machine.
func (e *emulator) Read(_ int, p uintptr, b []byte) {
	e.say('R', uint64(p), uint64(len(b)))
	e.hear(b)
}

// Device implements gputest.Machine.
func (e *emulator) Device(int) gpu.Device { return emuDevice{e} }

// Stream implements gputest.Machine.
func (e *emulator) Stream(rank int) device.Stream { return e.streams[rank] }

// Threads implements gputest.Machine.
func (e *emulator) Threads() []int { return []int{8, 20, 36} }

// Run implements gputest.Machine.
func (e *emulator) Run(seed uint64) error {
	most := e.most
	if most == 0 {
		most = 400_000_000
	}
	e.say('Z', seed, most, e.abortAfter, uint64(len(e.streams)))
	for _, s := range e.streams {
		e.number(uint64(len(s.queue)))
		for _, l := range s.queue {
			e.bytes(l)
		}
		s.queue = nil
	}
	what := make([]byte, e.heard())
	e.hear(what)
	if len(what) > 0 {
		return errors.New(string(what))
	}
	return nil
}

// emuStream is a rank's stream.
type emuStream struct {
	device.Stream // none of its methods is called
	e             *emulator
	queue         [][]byte
}

// emuDevice is the emulator as a gpu.Device.
type emuDevice struct{ e *emulator }

var _ gpu.Device = emuDevice{}

type emuMemory struct {
	e     *emulator
	addr  uintptr
	bytes int
	other bool
}

func (m *emuMemory) Addr() uintptr { return m.addr }
func (m *emuMemory) Bytes() int    { return m.bytes }
func (m *emuMemory) Free() error {
	if !m.other && m.e.live[m.addr] {
		delete(m.e.live, m.addr)
		m.e.say('F', uint64(m.addr))
	}
	return nil
}

func (d emuDevice) Alloc(bytes int) (device.Memory, error) {
	d.e.say('A', uint64(bytes))
	m := &emuMemory{e: d.e, addr: uintptr(d.e.heard()), bytes: bytes}
	d.e.live[m.addr] = true
	return m, nil
}

func (d emuDevice) Export(m device.Memory) ([]byte, error) {
	b := binary.LittleEndian.AppendUint64(nil, uint64(m.Addr()))
	return binary.LittleEndian.AppendUint64(b, uint64(m.Bytes())), nil
}

func (d emuDevice) Import(h []byte) (device.Memory, error) {
	return &emuMemory{e: d.e, addr: uintptr(binary.LittleEndian.Uint64(h)), bytes: int(binary.LittleEndian.Uint64(h[8:])), other: true}, nil
}

func (d emuDevice) Write(dst uintptr, b []byte) error {
	d.e.write(dst, b)
	return nil
}

func (d emuDevice) Warp() int { return 4 } // as testdata/emulator/machine.h has it

// emuStatus is the abort word.
type emuStatus struct{ *emuMemory }

func (d emuDevice) Status() (gpu.Status, error) {
	m, err := d.Alloc(8)
	if err != nil {
		return nil, err
	}
	d.e.say('K', uint64(m.Addr()))
	return emuStatus{m.(*emuMemory)}, nil
}

func (s emuStatus) Abort() { s.e.write(s.addr, []byte{1, 0, 0, 0}) }
func (s emuStatus) Fault() uint32 {
	var b [4]byte
	s.e.Read(0, s.addr+4, b[:])
	return binary.LittleEndian.Uint32(b[:])
}

type emuKernel struct{ name string }

func (d emuDevice) Kernel(name string) (gpu.Kernel, error) { return emuKernel{name}, nil }

type emuLaunch struct {
	name                    string
	blocks, threads, shared int
	args                    []byte
}

func (k emuKernel) Prepare(blocks, threads, shared, args int) (gpu.Launch, error) {
	return &emuLaunch{k.name, blocks, threads, shared, make([]byte, args)}, nil
}

func (l *emuLaunch) Args() []byte { return l.args }

func (l *emuLaunch) Queue(s device.Stream) error {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(l.name)))
	b = append(b, l.name...)
	for _, n := range []int{l.blocks, l.threads, l.shared} {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	b = binary.LittleEndian.AppendUint64(b, uint64(len(l.args)))
	q := s.(*emuStream)
	q.queue = append(q.queue, append(b, l.args...))
	return nil
}
