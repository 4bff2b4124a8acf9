// Package autotune chooses how a collective runs: algorithm, protocol, channels
// and chunk. It predicts the time of every choice that is legal (package
// autotune/model) from constants that were measured, takes the cheapest, and lets
// a table of choices that were measured to be best overrule the prediction.
// Constants and table together are a Profile, a JSON file that
// `go run ./bench tune` writes; a default one is part of the program.
package autotune
