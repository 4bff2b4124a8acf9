// Package hook has reductions for package bucket other than the plain average:
// gradients compressed to 16 bits on the wire, and none at all for measuring.
package hook
