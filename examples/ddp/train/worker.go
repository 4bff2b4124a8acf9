package train

import (
	"fmt"

	"github.com/goccl/goccl/examples/ddp/mnist"
	"github.com/goccl/goccl/examples/ddp/model"
)

// Worker is one rank's part of the training. A step is Gradients, the averaging of
// Param.Grad over the ranks by the caller, and Update. It is not safe for
// concurrent use.
type Worker struct {
	cfg    Config
	set    *mnist.Set
	scaler *Scaler
	shard  Shard
	model  *model.MLP
	sgd    *SGD
	rate   Schedule
	labels []uint8
	epoch  int   // the epoch that order is of, -1: none
	order  []int // this rank's samples of the epoch
}

// NewWorker makes the part of rank among size ranks in training on set. All ranks
// start from the same parameters, as they come from cfg.Seed.
func NewWorker(cfg Config, set *mnist.Set, rank, size int) (*Worker, error) {
	if err := cfg.check(set.Len(), rank, size); err != nil {
		return nil, err
	}
	return newWorker(cfg, set, NewScaler(set), rank, size)
}

func newWorker(cfg Config, set *mnist.Set, scaler *Scaler, rank, size int) (*Worker, error) {
	m, err := model.New(Sizes(), cfg.Batch/size, cfg.Seed)
	if err != nil {
		return nil, err
	}
	return &Worker{
		cfg: cfg, set: set, scaler: scaler, shard: Strided(rank, size), model: m,
		sgd:    NewSGD(m.Params(), momentum),
		rate:   Schedule{Peak: cfg.LR, Warmup: warmupSteps, Steps: cfg.Epochs * cfg.StepsPerEpoch(set.Len())},
		labels: make([]uint8, cfg.Batch/size),
		epoch:  -1,
	}, nil
}

// Model is the rank's model. Its gradients may be given other memory by SetGrad.
func (w *Worker) Model() *model.MLP { return w.model }

// Correct counts the images of set, from rank on in steps of size, that the model
// gives the right label. The sum over all ranks divided by set.Len() is the accuracy.
// It overwrites the model's input.
func (w *Worker) Correct(set *mnist.Set, rank, size int) (int, error) {
	return correct(w.model, w.scaler, set, rank, size)
}

// UseShard takes samples by s from the next epoch on, for instance by the sampler
// of a library.
func (w *Worker) UseShard(s Shard) { w.shard, w.epoch = s, -1 }

// Steps is the number of steps of the whole training.
func (w *Worker) Steps() int { return w.rate.Steps }

// Epoch is the epoch of step, from 0.
func (w *Worker) Epoch(step int) int { return step / w.cfg.StepsPerEpoch(w.set.Len()) }

// Gradients computes the mean loss over this rank's samples of step and its
// gradients, calling ready as model.MLP.Backward does; started, if not nil, is
// called between the forward and the backward pass. It changes no parameters: the
// same step can be computed again.
func (w *Worker) Gradients(step int, started func(), ready func(i int)) (loss float64, err error) {
	if err := w.fill(step); err != nil {
		return 0, err
	}
	if err := w.model.Forward(); err != nil {
		return 0, err
	}
	if loss, _, err = w.model.Loss(w.labels); err != nil {
		return 0, err
	}
	if started != nil {
		started()
	}
	return loss, w.model.Backward(ready)
}

// Update moves the parameters along the gradients, which the caller has averaged
// over the ranks, with the learning rate of step.
func (w *Worker) Update(step int) { w.sgd.Step(w.model.Params(), w.rate.Rate(step)) }

// fill puts this rank's samples of step into the model's input and their labels
// beside it.
func (w *Worker) fill(step int) error {
	if step < 0 || step >= w.Steps() {
		return fmt.Errorf("train: step %d of %d", step, w.Steps())
	}
	epoch := w.Epoch(step)
	if err := w.enter(epoch); err != nil {
		return err
	}
	per := len(w.labels)
	first := (step - epoch*w.cfg.StepsPerEpoch(w.set.Len())) * per
	input := w.model.Input()
	for i, sample := range w.order[first : first+per] {
		shift := Augment(w.cfg.Seed, epoch, sample)
		w.scaler.Fill(input[i*Inputs:(i+1)*Inputs], w.set.Image(sample), shift)
		w.labels[i] = w.set.Label(sample)
	}
	return nil
}

// enter draws the order of epoch if it is not the one at hand.
func (w *Worker) enter(epoch int) error {
	if epoch == w.epoch {
		return nil
	}
	w.order = w.order[:0]
	for sample := range w.shard(w.set.Len(), w.cfg.Seed, epoch) {
		if sample < 0 || sample >= w.set.Len() {
			return fmt.Errorf("train: the shard has sample %d of %d", sample, w.set.Len())
		}
		w.order = append(w.order, sample)
	}
	if need := w.cfg.StepsPerEpoch(w.set.Len()) * len(w.labels); len(w.order) < need {
		return fmt.Errorf("train: the shard has %d samples, an epoch needs %d", len(w.order), need)
	}
	w.epoch = epoch
	return nil
}
