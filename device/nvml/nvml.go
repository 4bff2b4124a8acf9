// Package nvml asks NVIDIA's management library how GPUs are wired: NVLinks and
// what is at their other ends, which device reaches which, how much memory is in
// use. It only asks; nothing is set.
//
// It needs cgo, Linux, and libnvidia-ml.so.1. Without them Open says which is
// missing, and callers go by the driver's attributes and by sysfs.
package nvml

import (
	"fmt"
	"sync"

	"github.com/goccl/goccl"
)

// Device is one GPU of the machine. All GPUs are listed, whatever
// CUDA_VISIBLE_DEVICES says, in an order of their own: find a device of CUDA by
// UUID or BusID, never by number.
type Device struct {
	Index int    // NVML's
	UUID  string // GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx
	BusID string // as in /sys/bus/pci/devices: 0000:3b:00.0
	Name  string
}

// End is what is at the other end of an NVLink.
type End uint8

// The ends.
const (
	UnknownEnd End = iota
	GPU
	Switch // NVSwitch: it joins all GPUs that are linked to it
	Other  // a CPU, or another kind of device
)

// String returns "unknown", "GPU", "switch" or "other".
func (e End) String() string {
	switch e {
	case UnknownEnd:
		return "unknown"
	case GPU:
		return "GPU"
	case Switch:
		return "switch"
	case Other:
		return "other"
	}
	return fmt.Sprintf("end(%d)", uint8(e))
}

// Link is an NVLink of a device that is up.
type Link struct {
	Number  int
	Version int // generation, 4 on Hopper; 0 where unknown
	End     End
	BusID   string // of the other end; empty where unknown
}

// Path is how one device reaches another.
type Path struct {
	Links    int  // NVLinks that carry its traffic, 0 for none
	Switched bool // through NVSwitch
	Read     bool // the driver allows loads
	Write    bool // the driver allows stores
	Atomics  bool // read-modify-write operations work
}

// source is what the library is asked; devices go by Index.
type source interface {
	devices() ([]Device, error)
	memory(device int) (total, used int, err error)
	links(device int) ([]Link, error)
	access(from, to int) (read, write, atomics bool, err error)
	close() error
}

// Library is NVML, initialised. It is safe for concurrent use.
type Library struct {
	mu     sync.RWMutex // calls read, Close writes: a call after the end would end the process
	from   source       // nil when closed
	listed []Device
}

// Open loads and initialises NVML. The error wraps goccl.ErrUnsupported where
// there is none.
func Open() (*Library, error) {
	from, err := newSource()
	if err != nil {
		return nil, fmt.Errorf("nvml: %w", err)
	}
	return newLibrary(from)
}

func newLibrary(from source) (*Library, error) {
	listed, err := from.devices()
	if err != nil {
		_ = from.close() // the first error says more
		return nil, fmt.Errorf("nvml: %w", err)
	}
	return &Library{from: from, listed: listed}, nil
}

// Close ends the use of NVML. It is idempotent.
func (l *Library) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.from == nil {
		return nil
	}
	from := l.from
	l.from = nil
	return from.close()
}

// Devices returns all GPUs of the machine, as they were when NVML was opened.
func (l *Library) Devices() []Device { return append([]Device(nil), l.listed...) }

// ByUUID returns the device of that name.
func (l *Library) ByUUID(uuid string) (Device, error) {
	return l.find(uuid, func(d Device) string { return d.UUID })
}

// ByBusID returns the device at that place.
func (l *Library) ByBusID(bus string) (Device, error) {
	return l.find(bus, func(d Device) string { return d.BusID })
}

func (l *Library) find(name string, of func(Device) string) (Device, error) {
	var others []string
	for _, d := range l.listed {
		if of(d) == name {
			return d, nil
		}
		others = append(others, of(d))
	}
	return Device{}, fmt.Errorf("nvml: %w: no GPU %s, the machine has %q", goccl.ErrInvalid, name, others)
}

// ask runs fn unless the library is closed.
func (l *Library) ask(d Device, fn func(from source) error) error {
	l.mu.RLock()
	defer l.mu.RUnlock()
	err := goccl.ErrClosed
	if l.from != nil {
		err = fn(l.from)
	}
	if err != nil {
		return fmt.Errorf("nvml: %s: %w", d.BusID, err)
	}
	return nil
}

// Memory returns how many bytes the device has and how many are in use, by all
// processes and by the driver itself.
func (l *Library) Memory(d Device) (total, used int, err error) {
	err = l.ask(d, func(from source) (err error) {
		total, used, err = from.memory(d.Index)
		return err
	})
	return total, used, err
}

// Links returns the NVLinks of the device that are up; none on a device without.
func (l *Library) Links(d Device) (links []Link, err error) {
	err = l.ask(d, func(from source) (err error) {
		links, err = from.links(d.Index)
		return err
	})
	return links, err
}

// Path returns how a reaches b. That a link is up does not say that the driver
// lets it be used; Read and Write do.
func (l *Library) Path(a, b Device) (Path, error) {
	var p Path
	err := l.ask(a, func(from source) error {
		ofA, err := from.links(a.Index)
		if err != nil {
			return err
		}
		ofB, err := from.links(b.Index)
		if err != nil {
			return err
		}
		p.Links, p.Switched = between(ofA, ofB, b.BusID)
		p.Read, p.Write, p.Atomics, err = from.access(a.Index, b.Index)
		return err
	})
	return p, err
}

// between counts the links of a that lead to b, directly or else through switches,
// where the end with fewer of them decides.
func between(ofA, ofB []Link, b string) (n int, switched bool) {
	up := func(links []Link) (n int) {
		for _, l := range links {
			if l.End == Switch {
				n++
			}
		}
		return n
	}
	for _, l := range ofA {
		if l.BusID == b && l.End != Switch {
			n++
		}
	}
	if n > 0 {
		return n, false
	}
	n = min(up(ofA), up(ofB))
	return n, n > 0
}
