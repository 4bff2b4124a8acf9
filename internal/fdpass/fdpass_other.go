//go:build !linux

// Package fdpass gives open files to other processes of this machine over unix
// sockets. Linux only.
package fdpass
