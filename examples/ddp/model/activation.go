package model

import "math"

// Knee is the width over which the activation between layers, ReLU, has its kink
// rounded off:
//
//	f(z) = 0           for z <= 0
//	     = z²/(2·knee) for 0 < z < knee
//	     = z - knee/2  above
//
// Its slope is continuous. With the step in ReLU's own slope, an input that is
// within rounding of zero on one machine and beyond it on another changes a gradient
// at once by far more than rounding, and training with another order of float32 sums
// drifts away. Like ReLU it leaves exact zeros, which cost no multiplication.
const Knee = 0.5

const knee = Knee // for the formulas

func smoothReLU(z float32) float32 {
	switch {
	case z <= 0:
		return 0
	case z < knee:
		return z * z * (1 / (2 * knee))
	default:
		return z - knee/2
	}
}

// throughActivation turns the gradient of the activation's outputs out into that of
// its inputs.
func throughActivation(grad, out []float32) {
	for i, y := range out[:len(grad)] {
		switch {
		case y <= 0:
			grad[i] = 0
		case y < knee/2:
			// The slope is z/knee with z = sqrt(2·knee·y).
			grad[i] *= float32(math.Sqrt(float64(y * (2 / knee))))
		}
	}
}
