// Package ui is what the example shows while it trains, and the keys it takes: a
// progress bar in a terminal, plain lines elsewhere.
package ui
