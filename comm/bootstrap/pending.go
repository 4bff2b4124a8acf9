package bootstrap

import (
	"container/list"
	"sync"
)

// pending holds the connections that have not yet said a valid hello. When there
// are too many the oldest is closed: a flood of silent clients costs a fixed number
// of descriptors and never keeps a real rank, which speaks at once, from joining.
type pending struct {
	mu    sync.Mutex
	limit int
	order *list.List // of *link, oldest first
	where map[*link]*list.Element
	shut  bool
}

func newPending(limit int) *pending {
	return &pending{limit: limit, order: list.New(), where: map[*link]*list.Element{}}
}

// add takes in a connection and reports whether an older one had to go. After
// closeAll it closes the connection at once.
func (p *pending) add(l *link) (evicted bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shut {
		l.close()
		return false
	}
	if p.order.Len() >= p.limit {
		oldest := p.order.Front()
		p.forget(oldest.Value.(*link))
		oldest.Value.(*link).close()
		evicted = true
	}
	p.where[l] = p.order.PushBack(l)
	return evicted
}

// remove takes out a connection that has identified itself or ended.
func (p *pending) remove(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forget(l)
}

func (p *pending) forget(l *link) {
	if e := p.where[l]; e != nil {
		p.order.Remove(e)
		delete(p.where, l)
	}
}

// closeAll closes what is there and what will come.
func (p *pending) closeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shut = true
	for l := range p.where {
		l.close()
	}
}
