package processgroup

import "github.com/goccl/goccl/device"

// Option changes one call. It is a plain value, so that passing one allocates
// nothing.
type Option struct {
	kind   optionKind
	tag    uint32
	label  string
	stream device.Stream
}

type optionKind uint8

const (
	optStream optionKind = iota + 1
	optTag
	optLabel
)

// OnStream orders the operation after the work queued on s so far. It is
// required for buffers in CUDA memory; no "current stream" is guessed.
func OnStream(s device.Stream) Option { return Option{kind: optStream, stream: s} }

// Tag marks a Send or Recv. Messages between two ranks match in the order of the
// calls; the tags must then agree, which catches a program that pairs the wrong
// ones. Other operations refuse a tag.
func Tag(t uint32) Option { return Option{kind: optTag, tag: t} }

// Label names the operation in errors, dumps and traces.
func Label(s string) Option { return Option{kind: optLabel, label: s} }

// Stream returns the stream of an OnStream, nil for another option.
func (o Option) Stream() device.Stream { return o.stream }

// settings are the options of one call put together.
type settings struct {
	stream device.Stream
	label  string
	tag    uint32
	tagged bool
}

func (g *Group) settings(o []Option) settings {
	s := settings{stream: g.stream}
	for i := range o {
		switch o[i].kind {
		case optStream:
			s.stream = o[i].stream
		case optTag:
			s.tag, s.tagged = o[i].tag, true
		case optLabel:
			s.label = o[i].label
		}
	}
	return s
}
