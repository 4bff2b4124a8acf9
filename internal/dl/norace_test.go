//go:build !race

package dl

const raceOn = false
