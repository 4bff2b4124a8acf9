// Package fake has doubles of a backend for tests that need no second process.
//
// Backend ends operations when the test says so: for the tests of code that starts
// operations, such as buckets. World connects the ranks of one process by the
// plainest engine that is right, with a control plane: for tests of groups, and
// the yardstick of the conformance suite.
package fake
