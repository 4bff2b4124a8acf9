package cuda

// Copy queues a copy of bytes from src to dst. Addresses are told apart by the
// driver: memory of any GPU that this one can reach or that the driver can stage
// for, pinned host memory, and other host memory, for which the call may wait.
func (c Section) Copy(dst, src uintptr, bytes int) error {
	if bytes == 0 {
		return nil
	}
	return c.fast(cuMemcpyAsync, dst, src, uintptr(bytes), c.s.handle)
}

// CopyPeer queues a copy between memory of two devices, also of two that cannot
// reach each other: the driver stages through the host then.
func (c Section) CopyPeer(dst uintptr, to *Device, src uintptr, from *Device, bytes int) error {
	if bytes == 0 {
		return nil
	}
	return c.fast(cuMemcpyPeerAsync, dst, to.ctx, src, from.ctx, uintptr(bytes), c.s.handle)
}

// Fill queues setting bytes of memory to v.
func (c Section) Fill(dst uintptr, v byte, bytes int) error {
	if bytes == 0 {
		return nil
	}
	return c.fast(cuMemsetD8Async, dst, uintptr(v), uintptr(bytes), c.s.handle)
}

// Fill32 queues setting count words of 4 bytes, at a multiple of 4, to v.
func (c Section) Fill32(dst uintptr, v uint32, count int) error {
	if count == 0 {
		return nil
	}
	return c.fast(cuMemsetD32Async, dst, uintptr(v), uintptr(count), c.s.handle)
}
