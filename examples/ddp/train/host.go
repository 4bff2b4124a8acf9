package train

import (
	"github.com/goccl/goccl/examples/ddp/mnist"
	"github.com/goccl/goccl/examples/ddp/model"
)

// Host is an Engine on the CPU.
type Host struct {
	model  *model.MLP
	sgd    *SGD
	labels []uint8
	loss   float64
}

var _ Engine = (*Host)(nil)

// NewHost makes the digits model for batch samples, with parameters that come from
// seed.
func NewHost(batch int, seed uint64) (*Host, error) {
	m, err := model.New(Sizes(), batch, seed)
	if err != nil {
		return nil, err
	}
	return &Host{model: m, sgd: NewSGD(m.Params(), Momentum), labels: make([]uint8, batch)}, nil
}

// Model is the model. Its gradients may be given other memory by SetGrad.
func (h *Host) Model() *model.MLP { return h.model }

// Batch implements Engine.
func (h *Host) Batch() int { return h.model.Batch() }

// Input implements Engine.
func (h *Host) Input() ([]float32, []uint8, error) { return h.model.Input(), h.labels, nil }

// Gradients implements Engine.
func (h *Host) Gradients(started func(), ready func(i int)) error {
	if err := h.model.Forward(); err != nil {
		return err
	}
	var err error
	if h.loss, _, err = h.model.Loss(h.labels); err != nil {
		return err
	}
	if started != nil {
		started()
	}
	return h.model.Backward(ready)
}

// Loss implements Engine.
func (h *Host) Loss() (float64, error) { return h.loss, nil }

// Update implements Engine.
func (h *Host) Update(rate float64) error {
	h.sgd.Step(h.model.Params(), rate)
	return nil
}

// Predict implements Engine.
func (h *Host) Predict(guess []uint8) error {
	if err := h.model.Forward(); err != nil {
		return err
	}
	h.model.Predict(guess)
	return nil
}

// Values implements Engine: the memory of the model.
func (h *Host) Values() ([]Value, error) {
	values := make([]Value, 0, len(h.model.Params()))
	for _, p := range h.model.Params() {
		values = append(values, Value{Name: p.Name, Shape: p.Value.Shape(), Data: p.Value.Float32s()})
	}
	return values, nil
}

// Sizes is the widths of the model's layers: 14 × 14 inputs to ten digits. The
// first layer, whose gradient is ready last and so has nothing left to hide
// behind, holds a tenth of the parameters.
func Sizes() []int { return []int{Inputs, 320, 544, 448, 288, mnist.Classes} }
