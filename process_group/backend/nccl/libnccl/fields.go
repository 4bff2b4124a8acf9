package libnccl

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unsafe"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/internal/dl"
)

// Field is a setting of a communicator, in the order of ncclConfig_t.
type Field uint8

// The settings. All but NetName and CommName are numbers.
const (
	Blocking Field = iota
	CGAClusterSize
	MinCTAs
	MaxCTAs
	NetName
	SplitShare
	TrafficClass
	CommName
	CollnetEnable
	CTAPolicy
	ShrinkShare
	NVLSCTAs
	ChannelsPerNetPeer
	NVLinkCentricSched
	GraphUsageMode
	RMAContexts
	MaxP2PPeers
	GraphStreamOrdering
	LaunchOrderImplicit
	RMASignals
	RMAEagerInit
	HostCFTMode
	NVLSHostMode

	numFields
)

// field is one line of the layout: where it lies, and in which version it came.
type field struct {
	name   string // NCCL's
	offset int
	text   bool
	since  Version
}

var fields = [numFields]field{
	Blocking:            {"blocking", 16, false, 21400},
	CGAClusterSize:      {"cgaClusterSize", 20, false, 21700},
	MinCTAs:             {"minCTAs", 24, false, 21700},
	MaxCTAs:             {"maxCTAs", 28, false, 21700},
	NetName:             {"netName", 32, true, 21700},
	SplitShare:          {"splitShare", 40, false, 21800},
	TrafficClass:        {"trafficClass", 44, false, 22600},
	CommName:            {"commName", 48, true, 22700},
	CollnetEnable:       {"collnetEnable", 56, false, 22700},
	CTAPolicy:           {"CTAPolicy", 60, false, 22700},
	ShrinkShare:         {"shrinkShare", 64, false, 22700},
	NVLSCTAs:            {"nvlsCTAs", 68, false, 22700},
	ChannelsPerNetPeer:  {"nChannelsPerNetPeer", 72, false, 22800},
	NVLinkCentricSched:  {"nvlinkCentricSched", 76, false, 22800},
	GraphUsageMode:      {"graphUsageMode", 80, false, 22900},
	RMAContexts:         {"numRmaCtx", 84, false, 22900},
	MaxP2PPeers:         {"maxP2pPeers", 88, false, 23000},
	GraphStreamOrdering: {"graphStreamOrdering", 92, false, 23005},
	LaunchOrderImplicit: {"launchOrderImplicit", 96, false, 23100},
	RMASignals:          {"numRmaSig", 100, false, 23100},
	RMAEagerInit:        {"rmaEagerInit", 104, false, 23100},
	HostCFTMode:         {"hostCftMode", 108, false, 23100},
	NVLSHostMode:        {"nvlsHostMode", 112, false, 23100},
}

// String returns NCCL's name of the field.
func (f Field) String() string {
	if f >= numFields {
		return fmt.Sprintf("field(%d)", uint8(f))
	}
	return fields[f].name
}

// Since returns the version that brought the field.
func (f Field) Since() Version {
	if f >= numFields {
		return math.MaxInt32
	}
	return fields[f].since
}

// unset is what an integer field holds that the caller leaves to NCCL.
const unset = math.MinInt32

// magic marks a configuration that was initialised.
const magic = 0xcafebeef

// Config is the settings of a communicator. The zero value leaves all to NCCL.
// NCCL's environment variables win over it.
type Config struct {
	given uint32 // bit f: field f
	ints  [numFields]int32
	texts [numFields]string
}

// Int sets a field that is a number. It panics when f is a text or v has more
// than 32 bits, a mistake of the program.
func (c *Config) Int(f Field, v int) {
	if fields[f].text || int(int32(v)) != v {
		panic(fmt.Sprintf("libnccl: %v = %d", f, v)) // panic: programmer error, see doc
	}
	c.given |= 1 << f
	c.ints[f] = int32(v)
}

// Text sets a field that is a text. It panics when f is a number.
func (c *Config) Text(f Field, v string) {
	if !fields[f].text {
		panic(fmt.Sprintf("libnccl: %v = %q", f, v)) // panic: programmer error, see doc
	}
	c.given |= 1 << f
	c.texts[f] = v
}

// Has reports whether f was set.
func (c *Config) Has(f Field) bool { return c.given&(1<<f) != 0 }

// Set sets the field that NCCL calls name.
func (c *Config) Set(name, value string) error {
	for f, d := range fields {
		if d.name != name {
			continue
		}
		if d.text {
			c.Text(Field(f), value)
			return nil
		}
		n, err := strconv.ParseInt(value, 0, 32)
		if err != nil {
			return fmt.Errorf("%w: the setting %s of NCCL is %q, which is no number", goccl.ErrInvalid, name, value)
		}
		c.Int(Field(f), int(n))
		return nil
	}
	return fmt.Errorf("%w: NCCL has no setting called %q", goccl.ErrInvalid, name)
}

// layout is ncclConfig_t as it lies in memory, and the texts it points to. NCCL
// may keep the texts, so the layout lives as long as the communicator.
type layout struct {
	words [maxConfig / 8]uint64
	texts [numFields][]byte
}

const maxConfig = 120

// sizeFor returns the bytes of ncclConfig_t in version v, as far as it is known.
func sizeFor(v Version) int {
	end := 16
	for _, f := range fields {
		if f.since > v {
			continue
		}
		width := 4
		if f.text {
			width = 8
		}
		end = max(end, f.offset+width)
	}
	return (end + 7) &^ 7
}

// encode writes c for a library of version v. The version in it is the library's
// own, at most the newest that is known: NCCL takes its defaults for what came
// later.
func (c *Config) encode(v Version) (*layout, error) {
	if err := c.check(v); err != nil {
		return nil, err
	}
	l := new(layout)
	base := unsafe.Pointer(&l.words)
	l.words[0] = uint64(sizeFor(v))
	*(*uint32)(unsafe.Add(base, 8)) = magic
	*(*uint32)(unsafe.Add(base, 12)) = uint32(min(v, Newest))
	for f, d := range fields {
		switch at := unsafe.Add(base, d.offset); {
		case d.text && c.Has(Field(f)):
			l.texts[f] = dl.CString(c.texts[f])
			*(*uintptr)(at) = uintptr(unsafe.Pointer(&l.texts[f][0]))
		case d.text: // NULL
		case c.Has(Field(f)):
			*(*int32)(at) = c.ints[f]
		default:
			*(*int32)(at) = unset
		}
	}
	return l, nil
}

// check refuses fields that a library of version v does not know, and bounds
// that NCCL would refuse without a word why.
func (c *Config) check(v Version) error {
	var errs []error
	for f, d := range fields {
		if c.Has(Field(f)) && d.since > v {
			errs = append(errs, fmt.Errorf("%w: the setting %s came with NCCL %v; %v is loaded", goccl.ErrUnsupported, d.name, d.since, v))
		}
	}
	least, most := c.ints[MinCTAs], c.ints[MaxCTAs]
	switch {
	case c.Has(MinCTAs) && least < 1, c.Has(MaxCTAs) && most < 1:
		errs = append(errs, fmt.Errorf("%w: minCTAs and maxCTAs count from 1", goccl.ErrInvalid))
	case c.Has(MinCTAs) && (!c.Has(MaxCTAs) || least > most):
		errs = append(errs, fmt.Errorf("%w: minCTAs %d needs a maxCTAs that is not smaller", goccl.ErrInvalid, least))
	}
	return errors.Join(errs...)
}

// String lists what was set, as "maxCTAs=32 netName=IB".
func (c *Config) String() string {
	var b strings.Builder
	for f, d := range fields {
		switch {
		case !c.Has(Field(f)):
		case d.text:
			fmt.Fprintf(&b, "%s=%s ", d.name, c.texts[f])
		default:
			fmt.Fprintf(&b, "%s=%d ", d.name, c.ints[f])
		}
	}
	return strings.TrimSuffix(b.String(), " ")
}
