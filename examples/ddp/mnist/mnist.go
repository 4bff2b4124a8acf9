// Package mnist holds a subset of the MNIST handwritten digits: the first 24,000
// of the 60,000 training images and all 10,000 test images, unchanged, 28 × 28
// pixels of 8 bits. README.md in this folder states the source and the licence.
package mnist

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/binary"
	"fmt"
	"io"
)

// The shape of the images and the size of the subset.
const (
	Side    = 28          // pixels in a row, and rows
	Pixels  = Side * Side // bytes in an image
	Classes = 10          // the digits 0 to 9
	Train   = 24000       // training images
	Test    = 10000       // test images
)

// SHA256 is the digest of the embedded data, uncompressed: four IDX files one
// after another (training images and labels, test images and labels).
const SHA256 = "042869fcaf438c12549ce32cb63a966f6efd43ac2e9eb7ca73f8fae607ee279b"

// The magic numbers of the IDX format: unsigned bytes in three dimensions and
// in one.
const (
	magicImages = 0x00000803
	magicLabels = 0x00000801
)

// digits.gz is written by the program in gen.
//
//go:generate go run ./gen
//go:embed digits.gz
var packed []byte

// Set is images with their labels. It is read-only: several goroutines may use
// it at once.
type Set struct {
	images []byte // Pixels each, one after another
	labels []uint8
}

// Len is the number of images.
func (s *Set) Len() int { return len(s.labels) }

// Image is the pixels of image i, row by row, 0 for paper and 255 for full ink.
// Do not change them.
func (s *Set) Image(i int) []byte { return s.images[i*Pixels : (i+1)*Pixels : (i+1)*Pixels] }

// Label is the digit that image i shows.
func (s *Set) Label(i int) uint8 { return s.labels[i] }

// First is the first n images of s, or all if there are fewer.
func (s *Set) First(n int) *Set {
	n = max(0, min(n, s.Len()))
	return &Set{images: s.images[: n*Pixels : n*Pixels], labels: s.labels[:n:n]}
}

// Load unpacks the embedded images: about 27 MB and a fifth of a second.
func Load() (train, test *Set, err error) {
	raw, err := unpack(packed)
	if err != nil {
		return nil, nil, err
	}
	return parse(raw)
}

func unpack(gz []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(gz))
	if err != nil {
		return nil, fmt.Errorf("mnist: embedded data: %w", err)
	}
	raw, err := io.ReadAll(z)
	if err != nil {
		return nil, fmt.Errorf("mnist: embedded data: %w", err)
	}
	return raw, nil
}

func parse(raw []byte) (train, test *Set, err error) {
	var sets [2]*Set
	for i, want := range []int{Train, Test} {
		var s Set
		if s.images, raw, err = cut(raw, magicImages, []int{want, Side, Side}); err != nil {
			return nil, nil, err
		}
		if s.labels, raw, err = cut(raw, magicLabels, []int{want}); err != nil {
			return nil, nil, err
		}
		for j, label := range s.labels {
			if label >= Classes {
				return nil, nil, fmt.Errorf("mnist: image %d of set %d has label %d", j, i, label)
			}
		}
		sets[i] = &s
	}
	if len(raw) != 0 {
		return nil, nil, fmt.Errorf("mnist: %d bytes after the last set", len(raw))
	}
	return sets[0], sets[1], nil
}

// cut takes one IDX file off the front of raw: a magic number, the dimensions as
// big-endian 32-bit numbers, then one byte per element.
func cut(raw []byte, magic uint32, dims []int) (data, rest []byte, err error) {
	head := 4 + 4*len(dims)
	if len(raw) < head {
		return nil, nil, fmt.Errorf("mnist: %d bytes left, need a header of %d", len(raw), head)
	}
	if got := binary.BigEndian.Uint32(raw); got != magic {
		return nil, nil, fmt.Errorf("mnist: magic number %#x, want %#x", got, magic)
	}
	size := 1
	for i, want := range dims {
		if got := binary.BigEndian.Uint32(raw[4+4*i:]); got != uint32(want) {
			return nil, nil, fmt.Errorf("mnist: dimension %d is %d, want %d", i, got, want)
		}
		size *= want
	}
	if len(raw)-head < size {
		return nil, nil, fmt.Errorf("mnist: %d bytes of data, want %d", len(raw)-head, size)
	}
	return raw[head : head+size : head+size], raw[head+size:], nil
}
