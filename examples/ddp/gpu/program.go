package gpu

import (
	"fmt"

	"github.com/goccl/goccl/device/cuda"
	"github.com/goccl/goccl/device/kernels"
	"github.com/goccl/goccl/device/kernels/abi"
	"github.com/goccl/goccl/examples/ddp/model"
	"github.com/goccl/goccl/examples/ddp/train"
)

// program is the kernels of a step, made ready once: queueing them again costs a call
// each. It goes stale when a gradient moves.
type program struct {
	stale    bool
	forward  []*cuda.Launch
	loss     []*cuda.Launch
	backward []piece
	update   []update
}

// piece is kernels of the backward pass, and which gradient is final behind them; -1:
// none.
type piece struct {
	launches []*cuda.Launch
	ready    int
}

// update is the step of one parameter.
type update struct {
	args   abi.SgdArgs
	launch *cuda.Launch
}

// maker collects launches up to the first that cannot be made.
type maker struct {
	gpu *GPU
	err error
}

// add appends one to list; l and err are of a function of package kernels.
func (m *maker) add(list *[]*cuda.Launch, l kernels.Launch, err error, args []byte) {
	if m.err != nil {
		return
	}
	if err != nil {
		m.err = err
		return
	}
	ready, err := m.gpu.launch(l, args)
	if err != nil {
		m.err = fmt.Errorf("kernel %s: %w", l.Kernel, err)
		return
	}
	*list = append(*list, ready)
}

func (p *program) build(e *Engine) error {
	*p = program{}
	m := &maker{gpu: e.gpu}
	for i := range e.layers {
		e.layers[i].forward(e, m, &p.forward)
	}
	p.buildLoss(e, m)
	for i := len(e.layers) - 1; i >= 0; i-- {
		p.buildBackward(e, m, i)
	}
	for _, q := range e.params {
		u := update{args: abi.SgdArgs{Value: uint64(q.value.Addr), Velocity: uint64(q.velocity.Addr), Grad: uint64(q.grad.Addr),
			N: uint64(q.value.Count), Momentum: train.Momentum}}
		var one []*cuda.Launch
		if m.add(&one, kernels.SGD(&u.args), nil, abi.Bytes(&u.args)); m.err == nil {
			u.launch = one[0]
			p.update = append(p.update, u)
		}
	}
	return m.err
}

// forward is out = activation(in·W + b), the last layer without the activation.
func (l *layer) forward(e *Engine, m *maker, list *[]*cuda.Launch) {
	product := abi.MatmulArgs{A: uint64(l.in.Addr), B: uint64(e.params[l.w].value.Addr), C: uint64(l.out.Addr),
		M: uint32(e.batch), N: uint32(l.size), K: uint32(l.fan), Alpha: 1}
	launch, err := kernels.Matmul(&product)
	m.add(list, launch, err, abi.Bytes(&product))
	bias := abi.BiasArgs{X: uint64(l.out.Addr), Bias: uint64(e.params[l.b].value.Addr), Rows: uint32(e.batch), Cols: uint32(l.size), Knee: model.Knee}
	if l.last {
		bias.Knee = 0
	}
	launch, err = kernels.Bias(&bias)
	m.add(list, launch, err, abi.Bytes(&bias))
}

// buildLoss is the loss of each sample, the gradient of the mean, and the sum.
func (p *program) buildLoss(e *Engine, m *maker) {
	l := &e.layers[len(e.layers)-1]
	xent := abi.XentArgs{Logits: uint64(l.out.Addr), Grad: uint64(l.dout.Addr), Labels: uint64(e.in.labels), Row: uint64(e.xent.row),
		Rows: uint32(e.batch), Classes: uint32(l.size), Batch: uint32(e.batch)}
	launch, err := kernels.SoftmaxXent(&xent)
	m.add(&p.loss, launch, err, abi.Bytes(&xent))
	sum := abi.XentSumArgs{Row: uint64(e.xent.row), Sum: uint64(e.xent.sum), Rows: uint32(e.batch)}
	m.add(&p.loss, kernels.XentSum(&sum), nil, abi.Bytes(&sum))
}

// buildBackward is the way back through layer i, in the order of package model: the
// gradient of its bias, that of its weight, and that of its input.
func (p *program) buildBackward(e *Engine, m *maker, i int) {
	l := &e.layers[i]
	bias, weight, input := piece{ready: l.b}, piece{ready: l.w}, piece{ready: -1}
	sum := abi.SumRowsArgs{X: uint64(l.dout.Addr), Sum: uint64(e.params[l.b].grad.Addr), Rows: uint32(e.batch), Cols: uint32(l.size)}
	m.add(&bias.launches, kernels.SumRows(&sum), nil, abi.Bytes(&sum))
	dw := abi.MatmulArgs{A: uint64(l.in.Addr), B: uint64(l.dout.Addr), C: uint64(e.params[l.w].grad.Addr),
		M: uint32(l.fan), N: uint32(l.size), K: uint32(e.batch), Flags: abi.MatmulTransposeA, Alpha: 1}
	launch, err := kernels.Matmul(&dw)
	m.add(&weight.launches, launch, err, abi.Bytes(&dw))
	p.backward = append(p.backward, bias, weight)
	if i == 0 {
		return // nobody asks for the gradient of the input
	}
	before := &e.layers[i-1]
	din := abi.MatmulArgs{A: uint64(l.dout.Addr), B: uint64(e.params[l.w].value.Addr), C: uint64(before.dout.Addr),
		M: uint32(e.batch), N: uint32(l.fan), K: uint32(l.size), Flags: abi.MatmulTransposeB, Alpha: 1}
	launch, err = kernels.Matmul(&din)
	m.add(&input.launches, launch, err, abi.Bytes(&din))
	through := abi.ReluGradArgs{Grad: uint64(before.dout.Addr), Out: uint64(before.out.Addr), N: uint64(before.out.Count), Knee: model.Knee}
	launch, err = kernels.SmoothReLUGrad(&through)
	m.add(&input.launches, launch, err, abi.Bytes(&through))
	p.backward = append(p.backward, input)
}
