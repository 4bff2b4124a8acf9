package cuda

import (
	"fmt"
	"strings"
	"unsafe"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/internal/dl"
)

// Code is a result of the driver; 0 is success.
type Code int32

// The codes that this package or its users tell apart. The driver names all
// others in its own words.
const (
	InvalidValue         Code = 1
	OutOfMemory          Code = 2
	NotInitialized       Code = 3
	Deinitialized        Code = 4
	StubLibrary          Code = 34
	DeviceUnavailable    Code = 46
	NoDevice             Code = 100
	InvalidDevice        Code = 101
	InvalidImage         Code = 200
	InvalidContext       Code = 201
	NoBinaryForGPU       Code = 209
	ECCUncorrectable     Code = 214
	PeerUnsupported      Code = 217
	InvalidPTX           Code = 218
	NVLinkUncorrectable  Code = 220
	UnsupportedPTX       Code = 222
	InvalidHandle        Code = 400
	NotFound             Code = 500
	NotReady             Code = 600
	IllegalAddress       Code = 700
	LaunchOutOfResources Code = 701
	PeerAlreadyEnabled   Code = 704
	PeerNotEnabled       Code = 705
	ContextDestroyed     Code = 709
	LaunchFailed         Code = 719
	CooperativeTooLarge  Code = 720
	NotPermitted         Code = 800
	NotSupported         Code = 801
	SystemNotReady       Code = 802
	DriverMismatch       Code = 803
	CompatNotSupported   Code = 804
	CaptureUnsupported   Code = 900
	CaptureInvalidated   Code = 901
	CapturedEvent        Code = 907
	Unknown              Code = 999
)

// advice is what a person can do, and the sentinel that errors.Is finds.
var advice = map[Code]struct {
	kind error
	hint string
}{
	InvalidValue:         {goccl.ErrInvalid, ""},
	OutOfMemory:          {nil, "free memory on the device, or see what else runs on it"},
	NotInitialized:       {goccl.ErrInvalid, ""},
	Deinitialized:        {goccl.ErrClosed, "the process is ending"},
	StubLibrary:          {goccl.ErrUnsupported, "the toolkit's stub libcuda was loaded; take its folder out of LD_LIBRARY_PATH"},
	DeviceUnavailable:    {nil, "the device is in exclusive mode and another process has it"},
	NoDevice:             {goccl.ErrUnsupported, "no GPU is visible; look at CUDA_VISIBLE_DEVICES and at the container's devices"},
	InvalidDevice:        {goccl.ErrInvalid, "there is no such device; CUDA_VISIBLE_DEVICES changes the numbers"},
	InvalidImage:         {goccl.ErrInvalid, "this is neither a cubin, a fatbin nor PTX"},
	InvalidContext:       {goccl.ErrInvalid, ""},
	NoBinaryForGPU:       {goccl.ErrUnsupported, "the kernels were not compiled for this GPU"},
	ECCUncorrectable:     {nil, "the GPU's memory is damaged; take the device out of service"},
	PeerUnsupported:      {goccl.ErrUnsupported, "these devices cannot reach each other's memory"},
	InvalidPTX:           {goccl.ErrInvalid, ""},
	NVLinkUncorrectable:  {nil, "an NVLink failed; look at dmesg and nvidia-smi nvlink -e"},
	UnsupportedPTX:       {goccl.ErrUnsupported, "the driver is older than the compiler of this PTX; update it or use a cubin"},
	InvalidHandle:        {goccl.ErrInvalid, "it was destroyed, or belongs to another context"},
	NotFound:             {goccl.ErrInvalid, "there is nothing of that name"},
	IllegalAddress:       {goccl.ErrAborted, "a kernel used a wrong address; the context is lost, the process must end"},
	LaunchOutOfResources: {goccl.ErrInvalid, "too many threads, registers or bytes of shared memory for one block"},
	ContextDestroyed:     {goccl.ErrClosed, ""},
	LaunchFailed:         {goccl.ErrAborted, "a kernel failed; the context is lost, the process must end"},
	CooperativeTooLarge:  {goccl.ErrInvalid, "the blocks do not fit on the device together"},
	NotPermitted:         {goccl.ErrUnsupported, ""},
	NotSupported:         {goccl.ErrUnsupported, ""},
	SystemNotReady:       {goccl.ErrUnsupported, "machines with NVSwitch need nvidia-fabricmanager running"},
	DriverMismatch:       {goccl.ErrUnsupported, "libcuda and the kernel module differ in version; reboot, or match the container's driver"},
	CompatNotSupported:   {goccl.ErrUnsupported, "this GPU does not take a newer libcuda than its kernel module"},
	CaptureUnsupported:   {goccl.ErrInvalid, "a stream is being captured and this cannot be"},
	CaptureInvalidated:   {goccl.ErrInvalid, "the capture ended when a call was made that cannot be captured"},
	CapturedEvent:        {goccl.ErrInvalid, "the event was recorded into a graph; it cannot be asked"},
}

// Error is a call that the driver refused. errors.Is finds the sentinel of
// goccl that fits, where one does.
type Error struct {
	Call string // "cuMemAlloc"
	Code Code
	Name string // "CUDA_ERROR_OUT_OF_MEMORY"; empty when the driver has no name for it
	Text string // the driver's own words
	Hint string // what to do; may be empty
	Log  string // what the driver's compiler said, for a module
}

// Error returns one line: call, code, name, text, and what to do.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: error %d", e.Call, e.Code)
	if e.Name != "" {
		fmt.Fprintf(&b, " %s", e.Name)
	}
	if e.Text != "" {
		fmt.Fprintf(&b, " (%s)", e.Text)
	}
	if e.Hint != "" {
		fmt.Fprintf(&b, ": %s", e.Hint)
	}
	if log := strings.Join(strings.Fields(e.Log), " "); log != "" {
		fmt.Fprintf(&b, ": %s", log)
	}
	return b.String()
}

// Unwrap returns the sentinel, nil where none fits.
func (e *Error) Unwrap() error { return advice[e.Code].kind }

// Is reports whether target is an *Error of the same code, so that errors.Is can
// look for one: errors.Is(err, &cuda.Error{Code: cuda.OutOfMemory}).
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && (t.Call == "" || t.Call == e.Call)
}

// failure makes the error of a call.
func (d *Driver) failure(p proc, code Code) error {
	return &Error{Call: p.String(), Code: code, Name: d.say(cuGetErrorName, code), Text: d.say(cuGetErrorString, code), Hint: advice[code].hint}
}

// say asks the driver for its word on a code.
func (d *Driver) say(p proc, code Code) string {
	var text uintptr
	if d.procs[p] == 0 || d.procs[p].Call(uintptr(code), uintptr(unsafe.Pointer(&text))) != 0 {
		return ""
	}
	return dl.GoString(text)
}
