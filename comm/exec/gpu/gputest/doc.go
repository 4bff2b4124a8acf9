// Package gputest is what tests of package gpu share: random operations on ranks of
// any Machine, held against the host executor bit by bit. One suite serves the
// emulator and GPUs.
package gputest
