package launch

import (
	"bytes"
	"io"
	"strconv"
	"sync"
)

// maxLine is the length from which a line is written in pieces, each as a line
// of its own: a rank that writes without end must not fill the memory.
const maxLine = 1 << 20

// lines cuts what one rank writes to one of its outputs into lines and passes
// them on whole. It is used by one goroutine.
type lines struct {
	to     io.Writer
	mu     *sync.Mutex // shared by all outputs of the job
	prefix string
	tail   *tail
	buf    []byte // prefix and what came of the present line
}

func newLines(to io.Writer, mu *sync.Mutex, rank int, prefix bool, t *tail) *lines {
	l := &lines{to: to, mu: mu, tail: t}
	if prefix {
		l.prefix = "[" + strconv.Itoa(rank) + "] "
	}
	return l
}

// Write never fails: a rank does not stop because its launcher's output is
// closed.
func (l *lines) Write(p []byte) (int, error) {
	l.tail.add(p)
	for rest := p; len(rest) > 0; {
		if len(l.buf) == 0 {
			l.buf = append(l.buf, l.prefix...)
		}
		n := bytes.IndexByte(rest, '\n') + 1
		whole := n > 0
		if !whole {
			n = len(rest)
		}
		if room := maxLine - (len(l.buf) - len(l.prefix)); n > room {
			n, whole = room, false
		}
		l.buf = append(l.buf, rest[:n]...)
		rest = rest[n:]
		if whole {
			l.flush()
		} else if len(l.buf)-len(l.prefix) >= maxLine {
			l.end()
		}
	}
	return len(p), nil
}

// end completes a last line that lacks its newline.
func (l *lines) end() {
	if len(l.buf) > 0 {
		l.buf = append(l.buf, '\n')
		l.flush()
	}
}

func (l *lines) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.to.Write(l.buf)
	l.buf = l.buf[:0]
}

// maxTail is how much of a rank's last output an ExitError carries.
const maxTail = 8 << 10

// tail keeps the last bytes that a rank wrote to either output.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

func (t *tail) add(p []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p[max(0, len(p)-maxTail):]...)
	if len(t.buf) > 2*maxTail {
		t.buf = append(t.buf[:0], t.buf[len(t.buf)-maxTail:]...)
	}
}

// String returns whole lines, at most maxTail bytes.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.buf) <= maxTail {
		return string(t.buf)
	}
	b := t.buf[len(t.buf)-maxTail:]
	if i := bytes.IndexByte(b, '\n'); i >= 0 && i < len(b)-1 {
		b = b[i+1:]
	}
	return string(b)
}
