// Package cuda is NVIDIA GPUs through the driver library, libcuda.so.1, which is
// found at run time: the package builds and is linked everywhere, and Load says
// what is missing where there is no driver. Neither toolkit nor C compiler is
// needed, and CUDA's runtime library is not used.
//
// Load the driver, Open a device, make memory and streams:
//
//	drv, err := cuda.Load()
//	dev, err := drv.Open(0)
//	mem, err := dev.Alloc(1 << 20)
//	st, err := dev.NewStream(0)
//
// What a framework has already made is accepted as it is: addresses (Pointer
// tells what they are), streams (Device.WrapStream), events (Device.WrapEvent),
// contexts (Driver.WrapContext).
//
// # Contexts and threads
//
// The driver keeps a current context per OS thread, and a goroutine may be on
// another thread after any call. So whatever needs a context runs in a stretch of
// LockOSThread, push, calls, pop, which leaves the thread as it was found: another
// library's current context survives. Methods do that by themselves. On hot paths
// Stream.Enter does it once for many calls:
//
//	sec, err := st.Enter()
//	if err != nil {
//		return err
//	}
//	defer sec.Leave()
//	sec.Wait(ready)
//	sec.Launch(kernel)
//	sec.Record(done)
//
// Calls that the driver answers without a current context enter none: asking an
// event, physical memory and its mapping, pools, and ending a graph.
//
// # Streams being captured
//
// While any thread of the process captures a stream in global mode, the driver
// forbids calls that could not be replayed (allocation, asking an event) to every
// thread that has not declared them harmless, and ends the capture when one is
// made. This package declares its own so, for the length of the call.
//
// # Left alone
//
// There is no managed memory here, no multicast object, and nothing that resets a
// device or changes its clocks or modes. A primary context is shared with the rest
// of the process and is only retained and released.
package cuda
