package dense

import (
	"fmt"
	"maps"
	"reflect"
	"strconv"
	"sync"
	"sync/atomic"

	"gorgonia.org/tensor"

	"github.com/goccl/goccl"
)

// builtin are the element types that gorgonia or this module define. They are
// told by exact identity: a user's own uint16 is not a half.
var builtin = func() map[reflect.Type]goccl.DType {
	word, uword := goccl.I64, goccl.U64
	if strconv.IntSize == 32 {
		word, uword = goccl.I32, goccl.U32
	}
	m := map[reflect.Type]goccl.DType{
		tensor.Float32.Type: goccl.F32, tensor.Float64.Type: goccl.F64,
		tensor.Int8.Type: goccl.I8, tensor.Int32.Type: goccl.I32, tensor.Int64.Type: goccl.I64, tensor.Int.Type: word,
		tensor.Uint8.Type: goccl.U8, tensor.Uint32.Type: goccl.U32, tensor.Uint64.Type: goccl.U64, tensor.Uint.Type: uword,
		reflect.TypeFor[goccl.Float16](): goccl.F16, reflect.TypeFor[goccl.BFloat16](): goccl.BF16,
	}
	return m
}()

// registered are the types that users added; replaced as a whole.
var registered atomic.Pointer[map[reflect.Type]goccl.DType]

// registering serialises changes, also of gorgonia's own table, which has no lock.
var registering sync.Mutex

func init() {
	registered.Store(&map[reflect.Type]goccl.DType{})
	tensor.Register(tensor.Dtype{Type: reflect.TypeFor[goccl.Float16]()})
	tensor.Register(tensor.Dtype{Type: reflect.TypeFor[goccl.BFloat16]()})
}

// RegisterDType says that the type of sample has the bits of d, for example
// RegisterDType(float16.Float16(0), goccl.F16) for the halves of x448/float16. The
// type must be a number of the same size. Registering the same again is fine;
// another d for a known type is an error. It is safe for concurrent use, also with
// collectives; do it before tensors of the type are made.
func RegisterDType(sample any, d goccl.DType) error {
	t := reflect.TypeOf(sample)
	switch {
	case t == nil:
		return fmt.Errorf("%w: RegisterDType needs a value of the type", goccl.ErrInvalid)
	case !d.Valid():
		return fmt.Errorf("%w: no element type %v", goccl.ErrInvalid, d)
	case !isNumber(t.Kind()):
		return fmt.Errorf("%w: %v is no number", goccl.ErrUnsupported, t)
	case int(t.Size()) != d.Size():
		return fmt.Errorf("%w: %v has %d bytes, %v has %d", goccl.ErrInvalid, t, t.Size(), d, d.Size())
	}
	registering.Lock()
	defer registering.Unlock()
	if known, ok := lookup(t); ok {
		if known != d {
			return fmt.Errorf("%w: %v is %v already", goccl.ErrInvalid, t, known)
		}
		return nil
	}
	tensor.Register(tensor.Dtype{Type: t})
	grown := maps.Clone(*registered.Load())
	grown[t] = d
	registered.Store(&grown)
	return nil
}

func isNumber(k reflect.Kind) bool {
	return k >= reflect.Int && k <= reflect.Float64 && k != reflect.Uintptr
}

func lookup(t reflect.Type) (goccl.DType, bool) {
	if d, ok := builtin[t]; ok {
		return d, true
	}
	d, ok := (*registered.Load())[t]
	return d, ok
}

// dtypeOf returns the element type of t.
func dtypeOf(t *tensor.Dense) (goccl.DType, error) {
	// The two that nearly everything is need no table.
	switch typ := t.Dtype().Type; typ {
	case tensor.Float32.Type:
		return goccl.F32, nil
	case tensor.Float64.Type:
		return goccl.F64, nil
	case nil:
		return 0, fmt.Errorf("%w: the tensor has no element type; was it given back to the pool?", goccl.ErrInvalid)
	default:
		if d, ok := lookup(typ); ok {
			return d, nil
		}
		return 0, fmt.Errorf("%w: tensors of %v; RegisterDType names the bits of a number type", goccl.ErrUnsupported, typ)
	}
}

// typeOf returns the Go type of tensors that New makes.
func typeOf(d goccl.DType) (tensor.Dtype, error) {
	switch d {
	case goccl.F32:
		return tensor.Float32, nil
	case goccl.F64:
		return tensor.Float64, nil
	case goccl.F16:
		return tensor.Dtype{Type: reflect.TypeFor[goccl.Float16]()}, nil
	case goccl.BF16:
		return tensor.Dtype{Type: reflect.TypeFor[goccl.BFloat16]()}, nil
	case goccl.I8:
		return tensor.Int8, nil
	case goccl.U8:
		return tensor.Uint8, nil
	case goccl.I32:
		return tensor.Int32, nil
	case goccl.U32:
		return tensor.Uint32, nil
	case goccl.I64:
		return tensor.Int64, nil
	case goccl.U64:
		return tensor.Uint64, nil
	}
	return tensor.Dtype{}, fmt.Errorf("%w: no Go type for tensors of %v", goccl.ErrUnsupported, d)
}
