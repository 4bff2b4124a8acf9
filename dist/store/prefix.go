package store

import "context"

// prefixed is a view of a store in which every key has a prefix.
type prefixed struct {
	s      Store
	prefix string
}

var _ Store = prefixed{}

// Prefix returns a view of s in which key k is key p+k of s. Views let several
// groups, or several jobs on one file, share a store without seeing each other.
// Errors name the whole key. Close of a view does nothing: s belongs to whoever
// opened it.
func Prefix(s Store, p string) Store {
	if in, ok := s.(prefixed); ok {
		return prefixed{in.s, in.prefix + p}
	}
	return prefixed{s, p}
}

func (p prefixed) Set(ctx context.Context, key string, val []byte) error {
	if key == "" {
		return opError("set", key, "prefix "+p.prefix, checkKey(key))
	}
	return p.s.Set(ctx, p.prefix+key, val)
}

func (p prefixed) Get(ctx context.Context, key string) ([]byte, error) {
	if key == "" {
		return nil, getError(key, "prefix "+p.prefix, checkKey(key))
	}
	return p.s.Get(ctx, p.prefix+key)
}

func (p prefixed) Add(ctx context.Context, key string, delta int64) (int64, error) {
	if key == "" {
		return 0, opError("add", key, "prefix "+p.prefix, checkKey(key))
	}
	return p.s.Add(ctx, p.prefix+key, delta)
}

func (p prefixed) CompareAndSwap(ctx context.Context, key string, old, val []byte) ([]byte, bool, error) {
	if key == "" {
		return nil, false, opError("compare-and-swap", key, "prefix "+p.prefix, checkKey(key))
	}
	return p.s.CompareAndSwap(ctx, p.prefix+key, old, val)
}

func (p prefixed) Delete(ctx context.Context, key string) (bool, error) {
	if key == "" {
		return false, opError("delete", key, "prefix "+p.prefix, checkKey(key))
	}
	return p.s.Delete(ctx, p.prefix+key)
}

func (p prefixed) Close() error { return nil }
