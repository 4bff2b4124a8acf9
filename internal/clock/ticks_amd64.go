package clock

// rdtsc reads the time-stamp counter.
//
//go:noescape
func rdtsc() uint64

//go:noescape
func cpuid(leaf uint32) (eax, edx uint32)

// counter reports whether the counter runs at a constant rate in all states of
// the processor (the invariant TSC of CPUID leaf 0x80000007).
var counter = func() bool {
	const highest, power, invariant = 0x80000000, 0x80000007, 1 << 8
	if most, _ := cpuid(highest); most < power {
		return false
	}
	_, edx := cpuid(power)
	return edx&invariant != 0
}()

func ticks() uint64 { return rdtsc() }
