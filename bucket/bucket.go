package bucket

import (
	"context"
	"fmt"
	"strings"

	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/process_group"
)

// Bucket is a group of gradients that are reduced together. It belongs to its
// Reducer and is valid until the next layout.
type Bucket struct {
	r       *Reducer
	index   int
	buffer  device.Buffer
	members []int
	bytes   int64 // of the gradients, without padding
	text    string
	opts    []processgroup.Option // the label, then those given to Ready in this step
}

// Index is the bucket's number: buckets are reduced in this order, from 0.
func (b *Bucket) Index() int { return b.index }

// Last reports whether b is the last bucket of a step.
func (b *Bucket) Last() bool { return b.index == len(b.r.buckets)-1 }

// Buffer is the bucket's memory: all its gradients, each aligned to 64 bytes,
// with zeros between them.
func (b *Bucket) Buffer() device.Buffer { return b.buffer }

// Params lists the indices of the parameters in the bucket, in the order of
// their gradients in memory. The slice is the Reducer's: do not change it.
func (b *Bucket) Params() []int { return b.members }

// View is the gradient of the k-th parameter of Params inside the bucket.
func (b *Bucket) View(k int) device.Buffer { return b.r.slots[b.members[k]] }

// Bytes is the size of the gradients in bytes, without padding.
func (b *Bucket) Bytes() int64 { return b.bytes }

// Group is the group that reduces the bucket.
func (b *Bucket) Group() *processgroup.Group { return b.r.g }

// Options are what a hook passes to the operation on the bucket: a label, and
// the options given to Ready for its gradients. The slice is valid inside
// Hook.Start.
func (b *Bucket) Options() []processgroup.Option { return b.opts }

// Wait blocks until the bucket's operation has ended or ctx ends. It does not
// copy results back; use it on what Reducer.Buckets yields, or in hooks.
func (b *Bucket) Wait(ctx context.Context) error { return b.r.works[b.index].Wait(ctx) }

// Join makes s wait for the bucket's operation; the host does not wait.
func (b *Bucket) Join(s device.Stream) error { return b.r.works[b.index].Join(s) }

// String names the bucket and its parameters, for messages.
func (b *Bucket) String() string { return b.text }

// explain adds the bucket's name to the failure of its operation, unless the
// operation carried it as its label.
func (b *Bucket) explain(err error) error {
	if strings.Contains(err.Error(), b.text) {
		return err
	}
	return fmt.Errorf("%w\n\tin %s", err, b.text)
}

func bucketText(index int, names []string, members []int) string {
	return fmt.Sprintf("bucket %d (%s)", index, nameList(names, members))
}
