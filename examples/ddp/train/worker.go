package train

import (
	"fmt"

	"github.com/goccl/goccl/examples/ddp/mnist"
)

// Worker is one rank's part of the training: it gives an Engine its samples, step by
// step. A step is Gradients, the averaging of the gradients over the ranks by the caller,
// and Update. It is not safe for concurrent use.
type Worker struct {
	cfg    Config
	set    *mnist.Set
	scaler *Scaler
	shard  Shard
	engine Engine
	rate   Schedule
	epoch  int   // the epoch that order is of, -1: none
	order  []int // this rank's samples of the epoch
}

// NewWorker makes the part of rank among size ranks in training on set. Its engine is
// for cfg.Batch/size samples. All ranks start from the same parameters.
func NewWorker(e Engine, cfg Config, set *mnist.Set, rank, size int) (*Worker, error) {
	if err := cfg.check(set.Len(), rank, size); err != nil {
		return nil, err
	}
	if e.Batch() != cfg.Batch/size {
		return nil, fmt.Errorf("train: an engine for %d samples, %d are a rank's share", e.Batch(), cfg.Batch/size)
	}
	return newWorker(e, cfg, set, NewScaler(set), rank, size), nil
}

func newWorker(e Engine, cfg Config, set *mnist.Set, scaler *Scaler, rank, size int) *Worker {
	return &Worker{
		cfg: cfg, set: set, scaler: scaler, shard: Strided(rank, size), engine: e,
		rate:  Schedule{Peak: cfg.LR, Warmup: warmupSteps, Steps: cfg.Epochs * cfg.StepsPerEpoch(set.Len())},
		epoch: -1,
	}
}

// Values are the parameters as they stand; see Engine.
func (w *Worker) Values() ([]Value, error) { return w.engine.Values() }

// Correct counts the images of set, from rank on in steps of size, that the model
// gives the right label. The sum over all ranks divided by set.Len() is the accuracy.
// It overwrites the engine's input.
func (w *Worker) Correct(set *mnist.Set, rank, size int) (int, error) {
	return correct(w.engine, w.scaler, set, rank, size)
}

// UseShard takes samples by s from the next epoch on, for instance by the sampler
// of a library.
func (w *Worker) UseShard(s Shard) { w.shard, w.epoch = s, -1 }

// Steps is the number of steps of the whole training.
func (w *Worker) Steps() int { return w.rate.Steps }

// Epoch is the epoch of step, from 0.
func (w *Worker) Epoch(step int) int { return step / w.cfg.StepsPerEpoch(w.set.Len()) }

// Gradients computes this rank's gradients of step, as Engine.Gradients does. It changes
// no parameters: the same step can be computed again.
func (w *Worker) Gradients(step int, started func(), ready func(i int)) error {
	if err := w.fill(step); err != nil {
		return err
	}
	return w.engine.Gradients(started, ready)
}

// Loss is the mean loss over this rank's samples of the last Gradients.
func (w *Worker) Loss() (float64, error) { return w.engine.Loss() }

// Update moves the parameters along the gradients, which the caller has averaged
// over the ranks, with the learning rate of step.
func (w *Worker) Update(step int) error { return w.engine.Update(w.rate.Rate(step)) }

// fill puts this rank's samples of step and their labels into the engine's input.
func (w *Worker) fill(step int) error {
	if step < 0 || step >= w.Steps() {
		return fmt.Errorf("train: step %d of %d", step, w.Steps())
	}
	epoch := w.Epoch(step)
	if err := w.enter(epoch); err != nil {
		return err
	}
	input, labels, err := w.engine.Input()
	if err != nil {
		return err
	}
	per := len(labels)
	first := (step - epoch*w.cfg.StepsPerEpoch(w.set.Len())) * per
	for i, sample := range w.order[first : first+per] {
		shift := Augment(w.cfg.Seed, epoch, sample)
		w.scaler.Fill(input[i*Inputs:(i+1)*Inputs], w.set.Image(sample), shift)
		labels[i] = w.set.Label(sample)
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
	if need := w.cfg.StepsPerEpoch(w.set.Len()) * w.engine.Batch(); len(w.order) < need {
		return fmt.Errorf("train: the shard has %d samples, an epoch needs %d", len(w.order), need)
	}
	w.epoch = epoch
	return nil
}
