package libnccl

import (
	"math"
	"unsafe"

	"github.com/goccl/goccl"
)

// The collectives and transfers. Addresses are of device memory, counts are of
// elements, stream is a CUstream. Each queues its work on the stream and returns.

// AllReduce reduces send of all ranks into recv; they may be the same.
func (c *Comm) AllReduce(send, recv uintptr, count int, t DataType, op RedOp, stream uintptr) Result {
	return result(c.lib.fn[symAllReduce].Fast(send, recv, uintptr(count), uintptr(t), uintptr(op), *c.handle, stream))
}

// Reduce reduces send of all ranks into recv of root.
func (c *Comm) Reduce(send, recv uintptr, count int, t DataType, op RedOp, root int, stream uintptr) Result {
	return result(c.lib.fn[symReduce].Fast(send, recv, uintptr(count), uintptr(t), uintptr(op), uintptr(root), *c.handle, stream))
}

// Broadcast copies send of root into recv of all ranks.
func (c *Comm) Broadcast(send, recv uintptr, count int, t DataType, root int, stream uintptr) Result {
	return result(c.lib.fn[symBroadcast].Fast(send, recv, uintptr(count), uintptr(t), uintptr(root), *c.handle, stream))
}

// AllGather copies send, of count elements, of each rank to its part of recv.
func (c *Comm) AllGather(send, recv uintptr, count int, t DataType, stream uintptr) Result {
	return result(c.lib.fn[symAllGather].Fast(send, recv, uintptr(count), uintptr(t), *c.handle, stream))
}

// ReduceScatter reduces send of all ranks and leaves this rank's part, of count
// elements, in recv.
func (c *Comm) ReduceScatter(send, recv uintptr, count int, t DataType, op RedOp, stream uintptr) Result {
	return result(c.lib.fn[symReduceScatter].Fast(send, recv, uintptr(count), uintptr(t), uintptr(op), *c.handle, stream))
}

// Send sends to a peer, which must receive as many elements.
func (c *Comm) Send(send uintptr, count int, t DataType, peer int, stream uintptr) Result {
	return result(c.lib.fn[symSend].Fast(send, uintptr(count), uintptr(t), uintptr(peer), *c.handle, stream))
}

// Recv receives from a peer.
func (c *Comm) Recv(recv uintptr, count int, t DataType, peer int, stream uintptr) Result {
	return result(c.lib.fn[symRecv].Fast(recv, uintptr(count), uintptr(t), uintptr(peer), *c.handle, stream))
}

// PreMulSum makes the reduction that multiplies this rank's input by scale, for
// elements of d, which are floats. It may be destroyed as soon as the calls that
// use it have returned.
func (c *Comm) PreMulSum(scale float32, d goccl.DType) (RedOp, Result) {
	t, ok := elements[d]
	if !ok {
		return 0, InvalidArgument
	}
	const immediate = 1 // the scale is read before the call returns
	op, value := new(int32), new(uint64)
	*value = scaleBits(scale, d)
	r := result(c.lib.fn[symRedOpCreatePreMulSum].Call(uintptr(unsafe.Pointer(op)), uintptr(unsafe.Pointer(value)), uintptr(t), immediate, *c.handle))
	return RedOp(*op), r
}

// DestroyOp frees a reduction of PreMulSum.
func (c *Comm) DestroyOp(op RedOp) Result {
	return result(c.lib.fn[symRedOpDestroy].Fast(uintptr(op), *c.handle))
}

// scaleBits is scale as an element of d, in the low bytes of a word.
func scaleBits(scale float32, d goccl.DType) uint64 {
	switch d {
	case goccl.F64:
		return math.Float64bits(float64(scale))
	case goccl.F16:
		return uint64(goccl.ToFloat16(scale))
	case goccl.BF16:
		return uint64(goccl.ToBFloat16(scale))
	}
	return uint64(math.Float32bits(scale))
}

// Register tells NCCL of a buffer of this rank that collectives use again and
// again. It is local.
func (c *Comm) Register(addr uintptr, bytes int) (uintptr, error) {
	handle := new(uintptr)
	r := result(c.lib.fn[symCommRegister].Call(*c.handle, addr, uintptr(bytes), uintptr(unsafe.Pointer(handle))))
	return *handle, c.Err("ncclCommRegister", r)
}

// Deregister ends a Register.
func (c *Comm) Deregister(handle uintptr) error {
	return c.Err("ncclCommDeregister", result(c.lib.fn[symCommDeregister].Call(*c.handle, handle)))
}

// symmetric asks for a window in which equal offsets are equal places on all ranks.
const symmetric = 1

// RegisterWindow is Register of buffers that all ranks give at the same time, with
// the same size: collectives within them read and write peers' memory. It is
// collective. If c does not block, it has only begun, whatever it returned, and what
// is returned points to the window when AsyncError is Success.
func (c *Comm) RegisterWindow(addr uintptr, bytes int) (*uintptr, error) {
	f := c.lib.fn[symCommWindowRegister]
	if f == 0 {
		return nil, c.lib.unsupported(symCommWindowRegister)
	}
	window := new(uintptr)
	c.out = window
	r := result(f.Call(*c.handle, addr, uintptr(bytes), uintptr(unsafe.Pointer(window)), symmetric))
	return window, c.Err("ncclCommWindowRegister", r)
}

// DeregisterWindow ends a RegisterWindow; it is local.
func (c *Comm) DeregisterWindow(window uintptr) error {
	f := c.lib.fn[symCommWindowDeregister]
	if f == 0 {
		return c.lib.unsupported(symCommWindowDeregister)
	}
	return c.Err("ncclCommWindowDeregister", result(f.Call(*c.handle, window)))
}
