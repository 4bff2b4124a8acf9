//go:build race

package dl

const raceOn = true
