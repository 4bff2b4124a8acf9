package train

import "github.com/goccl/goccl/examples/ddp/mnist"

// half is the side of an image after pooling.
const half = mnist.Side / 2

// Inputs is the number of inputs a digit gives the model: 14 × 14 means of 2 × 2
// pixels.
const Inputs = half * half

// Shift is how far, in pixels, a training sample is moved. It depends on seed,
// epoch and sample only.
type Shift struct{ DX, DY int }

// Augment draws the shift of a sample: each way by -1, 0 or 1 pixels.
func Augment(seed uint64, epoch, sample int) Shift {
	x := mix(mix(mix(seed, streamAugment), uint64(epoch)), uint64(sample))
	return Shift{DX: int(x>>32%3) - 1, DY: int(uint32(x)%3) - 1}
}

// Scaler turns images into inputs: pooled, less the mean of the images it was made
// from, and scaled to a spread near one. Without the mean the loss is so much
// steeper that training tolerates only a fraction of the learning rate, and rounding
// errors grow. It is read-only: several goroutines may use it.
type Scaler struct{ mean [Inputs]float32 }

// inputScale brings the spread of the inputs, 0.25 of full ink, near one.
const inputScale = 3

// NewScaler makes a scaler for set.
func NewScaler(set *mnist.Set) *Scaler {
	var sum [mnist.Pixels]int // exact, whatever the order
	for i := range set.Len() {
		for j, v := range set.Image(i) {
			sum[j] += int(v)
		}
	}
	s := &Scaler{}
	for r := range half {
		for c := range half {
			top := 2*r*mnist.Side + 2*c
			four := sum[top] + sum[top+1] + sum[top+mnist.Side] + sum[top+mnist.Side+1]
			s.mean[r*half+c] = float32(float64(four) / float64(max(1, set.Len())) * (inputScale / (4.0 * 255)))
		}
	}
	return s
}

// Fill writes the Inputs values of image, moved by shift, to dst. What moves in from
// outside is paper.
func (s *Scaler) Fill(dst []float32, image []byte, shift Shift) {
	for r := range half {
		for c := range half {
			sum := 0
			for _, y := range [2]int{2*r - shift.DY, 2*r + 1 - shift.DY} {
				if y < 0 || y >= mnist.Side {
					continue
				}
				for _, x := range [2]int{2*c - shift.DX, 2*c + 1 - shift.DX} {
					if x >= 0 && x < mnist.Side {
						sum += int(image[y*mnist.Side+x])
					}
				}
			}
			dst[r*half+c] = float32(sum)*(inputScale/(4.0*255)) - s.mean[r*half+c]
		}
	}
}
