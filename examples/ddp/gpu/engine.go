package gpu

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/device/cuda"
	"github.com/goccl/goccl/device/kernels/abi"
	"github.com/goccl/goccl/examples/ddp/model"
	"github.com/goccl/goccl/examples/ddp/train"
)

// Engine is a train.Engine on a GPU. All its work is on one stream.
type Engine struct {
	gpu    *GPU
	ctx    context.Context // bounds every wait
	stream *cuda.Stream
	batch  int
	params []param
	layers []layer
	in     feed
	xent   xent
	work   program
	memory memory
	done   *cuda.Event // of the last wait
}

var _ train.Engine = (*Engine)(nil)

// param is a parameter on the device.
type param struct {
	name                  string
	shape                 []int
	value, velocity, grad device.Buffer
}

// layer is out = in·W + b and, but for the last layer, the activation.
type layer struct {
	w, b      int // indices of its parameters
	in        device.Buffer
	out, dout device.Buffer
	fan, size int
	last      bool
}

// Bytes of the structures that the kernels of the loss write.
const (
	sumBytes = 16 // abi.XentSum
	rowBytes = 16 // abi.XentRow
)

// closeWithin is how long Close waits for the device.
const closeWithin = 30 * time.Second

// xent is where the loss of a batch comes together.
type xent struct {
	row, sum uintptr      // XentRow of each sample; XentSum
	read     *cuda.Pinned // XentSum, then the rows
	ended    *cuda.Event  // the sum is in read
}

// NewEngine makes the digits model for batch samples on g, with the same parameters as
// train.NewHost has for seed. ctx bounds all waiting of the engine, for as long as it
// lives.
func NewEngine(ctx context.Context, g *GPU, batch int, seed uint64) (*Engine, error) {
	m, err := model.New(train.Sizes(), batch, seed)
	if err != nil {
		return nil, err
	}
	e := &Engine{gpu: g, ctx: ctx, batch: batch, memory: memory{dev: g.dev}}
	if err := e.build(m); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

func (e *Engine) build(m *model.MLP) error {
	var err1, err2, err3 error
	e.stream, err1 = e.gpu.dev.Stream(0)
	e.xent.ended, err2 = e.gpu.dev.NewEvent()
	e.done, err3 = e.gpu.dev.NewEvent()
	if err := errors.Join(err1, err2, err3, e.in.build(e)); err != nil {
		return err
	}
	e.xent.row, e.xent.sum = e.memory.bytes(rowBytes*e.batch), e.memory.bytes(sumBytes)
	e.xent.read = e.memory.pinned(sumBytes + rowBytes*e.batch)
	for _, p := range m.Params() {
		e.params = append(e.params, param{
			name: p.Name, shape: p.Value.Shape().Clone(),
			value: e.memory.floats(p.Count()), velocity: e.memory.floats(p.Count()), grad: e.memory.floats(p.Count()),
		})
	}
	in := e.in.images
	sizes := train.Sizes()
	for i, fan := range sizes[:len(sizes)-1] {
		l := layer{w: 2 * i, b: 2*i + 1, in: in, fan: fan, size: sizes[i+1], last: i == len(sizes)-2}
		l.out, l.dout = e.memory.floats(e.batch*l.size), e.memory.floats(e.batch*l.size)
		e.layers = append(e.layers, l)
		in = l.out
	}
	if e.memory.err != nil {
		return e.memory.err
	}
	for i, p := range m.Params() {
		if err := e.gpu.dev.Write(e.ctx, e.params[i].value.Addr, bytesOf(p.Value.Float32s())); err != nil {
			return err
		}
	}
	return e.work.build(e)
}

// Close frees what the engine holds, after its work has ended.
func (e *Engine) Close() error {
	var errs []error
	if e.stream != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(e.ctx), closeWithin)
		defer cancel()
		if err := e.stream.Sync(ctx); err != nil {
			return err // the device still uses what would be freed
		}
		errs = append(errs, e.stream.Close())
	}
	for _, ev := range []*cuda.Event{e.xent.ended, e.in.read, e.done} {
		if ev != nil {
			ev.Release()
		}
	}
	return errors.Join(append(errs, e.memory.free())...)
}

// Stream is where all work of the engine goes.
func (e *Engine) Stream() *cuda.Stream { return e.stream }

// Batch implements train.Engine.
func (e *Engine) Batch() int { return e.batch }

// Value is parameter i on the device.
func (e *Engine) Value(i int) device.Buffer { return e.params[i].value }

// Grad is where the gradient of parameter i is written.
func (e *Engine) Grad(i int) device.Buffer { return e.params[i].grad }

// SetGrad has the gradient of parameter i written to g from the next Gradients on, and
// read there by Update.
func (e *Engine) SetGrad(i int, g device.Buffer) error {
	p := &e.params[i]
	if g.Device != p.value.Device || g.DType != goccl.F32 || g.Count != p.value.Count {
		return fmt.Errorf("%w: gradient of %s is %d x %v on %v, want %d x f32 on %v", goccl.ErrInvalid,
			p.name, g.Count, g.DType, g.Device, p.value.Count, p.value.Device)
	}
	p.grad = g
	e.work.stale = true
	return nil
}

// Values implements train.Engine: copies from the device.
func (e *Engine) Values() ([]train.Value, error) {
	if err := e.stream.Sync(e.ctx); err != nil {
		return nil, err
	}
	values := make([]train.Value, len(e.params))
	for i, p := range e.params {
		b := make([]byte, p.value.Bytes())
		if err := e.gpu.dev.Read(e.ctx, b, p.value.Addr); err != nil {
			return nil, err
		}
		values[i] = train.Value{Name: p.name, Shape: p.shape, Data: Floats(b)}
	}
	return values, nil
}

// sumOf is what xent_sum wrote.
func (x *xent) sumOf() abi.XentSum {
	var s abi.XentSum
	copy(abi.Bytes(&s), x.read.Host())
	return s
}
