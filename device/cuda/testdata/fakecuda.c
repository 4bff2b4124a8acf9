/*
 * A model of libcuda for tests: two GPUs whose memory is memory of the host and
 * whose streams are lists that move when somebody asks. It is strict where the
 * driver is: a call that needs a current context fails without one, handles go
 * with their context, a call that cannot be captured ends captures in global
 * mode, and what is freed must exist. fake_log tells the calls, fake_set plans
 * failures. Memory is in memfds, so two processes share it as GPUs do. Kernels other
 * than its own are functions host_NAME(blocks, threads, 0, arguments) of the library
 * that FAKECUDA_KERNELS names.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef uint64_t u64;
typedef uint32_t u32;
typedef struct { char b[64]; } raw_handle;

enum { OK = 0, INVALID = 1, NOMEM = 2, NO_DEVICE = 100, BAD_DEVICE = 101, BAD_IMAGE = 200, NO_CONTEXT = 201,
       BAD_HANDLE = 400, NOT_FOUND = 500, NOT_READY = 600, PEER_TWICE = 704, UNSUPPORTED = 801, UNSAFE = 900, INVALIDATED = 901, CAPTURED = 907 };
enum { GLOBAL = 0, THREAD = 1, RELAXED = 2 };
enum { DEVICES = 2, MANY = 4096, STEP = 2 << 20 };

struct ctx { int device, refs, peers[DEVICES]; };
struct counts { volatile u64 recorded, done; };
struct event { struct ctx *ctx; struct counts *shared; struct graph *into; u64 mark; int fd, captured, alive; };
struct func { struct module *module; char name[64]; int shared, (*host)(u32, u32, u32, const void *); };
struct module { struct ctx *ctx; char *text; struct func funcs[16]; int n; u64 answer; };
struct op { int kind; u64 a, b, v; size_t n; struct event *event; struct func *func; char args[256]; struct op *next; };
struct graph { struct op *head, *tail; };
struct stream { struct ctx *ctx; struct op *head, *tail; struct graph *graph; int mode, broken, alive, priority; struct stream *next; };
struct span { u64 at; size_t n; int fd, kind, device, refs, pid, remote; u64 id; };
enum { COPY = 1, SET8, SET32, RECORD, WAIT_EVENT, WAIT32, WAIT64, WRITE32, WRITE64, KERNEL, RELEASE };
enum { DEVICE_MEMORY = 1, PINNED, REGISTERED, MAPPED, RESERVED, FROM_POOL, OPENED };

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static struct ctx primary[DEVICES], foreign;
static struct span spans[MANY];
static struct stream *streams, legacy = {.alive = 1};
static u64 ids = 100, marks;
static char passed[1 << 20]; /* by mark: that point of a stream is done */
static _Thread_local struct ctx *stack[16];
static _Thread_local int depth, mode;
static char text[1 << 18];
static size_t used;
static struct { char name[64]; int code; } planned;
static int version = 12080, count = DEVICES, peers = 1, vmm = 1;

/* note writes a line of the log. */
static void note(const char *fmt, ...) {
	va_list ap;
	va_start(ap, fmt);
	if (used < sizeof text - 512) {
		used += vsnprintf(text + used, 500, fmt, ap);
		text[used++] = '\n';
		text[used] = 0;
	}
	va_end(ap);
}

/* fake_log returns the calls since the last time. */
const char *fake_log(void) {
	static char copy[sizeof text];
	pthread_mutex_lock(&mu);
	memcpy(copy, text, used + 1);
	used = 0, text[0] = 0;
	pthread_mutex_unlock(&mu);
	return copy;
}

/* fake_set changes the machine, or makes the next call of a name fail with v. */
void fake_set(const char *what, int v) {
	pthread_mutex_lock(&mu);
	if (!strcmp(what, "version")) version = v;
	else if (!strcmp(what, "devices")) count = v;
	else if (!strcmp(what, "peers")) peers = v;
	else if (!strcmp(what, "vmm")) vmm = v;
	else snprintf(planned.name, sizeof planned.name, "%s", what), planned.code = v;
	pthread_mutex_unlock(&mu);
}

u64 fake_context(int device) { foreign.device = device, foreign.refs = 1; return (u64)&foreign; }
int fake_depth(void) { return depth; }
int fake_spans(void) {
	int n = 0;
	for (int i = 0; i < MANY; i++) n += spans[i].at && spans[i].kind != RESERVED;
	return n;
}

static int plan(const char *name) {
	if (!planned.code || strcmp(planned.name, name)) return 0;
	int code = planned.code;
	planned.code = 0;
	return code;
}

static int leave(int code) { pthread_mutex_unlock(&mu); return code; }
static struct ctx *current(void) { return depth ? stack[depth - 1] : 0; }

/* unsafe is what the driver does with a call that cannot be replayed. */
static int unsafe_call(void) {
	int bad = 0;
	for (struct stream *s = streams; s; s = s->next)
		if (s->graph && s->mode == GLOBAL && mode != RELAXED) s->broken = bad = 1;
	return bad;
}

#define CALL(name, fmt, ...) do { pthread_mutex_lock(&mu); note(name " " fmt, __VA_ARGS__); \
	int planned_code = plan(name); if (planned_code) return leave(planned_code); } while (0)
#define NEED_CONTEXT do { if (!current() || current()->refs == 0) return leave(NO_CONTEXT); } while (0)
#define UNSAFE_CALL do { if (unsafe_call()) return leave(UNSAFE); } while (0)

static struct span *find(u64 addr) {
	for (int i = 0; i < MANY; i++)
		if (spans[i].at && spans[i].kind != RESERVED && addr >= spans[i].at && addr < spans[i].at + spans[i].n) return &spans[i];
	return 0;
}

static struct span *exact(u64 addr, int kind) {
	struct span *s = find(addr);
	return s && s->at == addr && s->kind == kind ? s : 0;
}

static struct span *add(u64 at, size_t n, int fd, int kind, int device) {
	for (int i = 0; i < MANY; i++)
		if (!spans[i].at) {
			spans[i] = (struct span){.at = at, .n = n, .fd = fd, .kind = kind, .device = device, .refs = 1, .id = ids++};
			return &spans[i];
		}
	return 0;
}

static struct span *make(size_t n, int kind, int device) {
	size_t whole = (n + 4095) / 4096 * 4096;
	int fd = memfd_create("fake-gpu", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, whole)) return 0;
	void *p = mmap(0, whole, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	memset(p, 0xa5, n); /* memory of a GPU is not zero */
	return add((u64)p, n, fd, kind, device);
}

static void drop(struct span *s) {
	if (s->kind != REGISTERED) munmap((void *)s->at, (s->n + 4095) / 4096 * 4096);
	if (s->fd >= 0) close(s->fd);
	memset(s, 0, sizeof *s);
}

/* ---- the device and its contexts ---- */

int cuDriverGetVersion(int *v) { *v = version; return 0; }
int cuInit(u32 flags) { CALL("cuInit", "%u", flags); return leave(count ? OK : NO_DEVICE); }
int cuGetErrorName(int code, const char **s) {
	*s = code == NOMEM ? "CUDA_ERROR_OUT_OF_MEMORY" : code == UNSAFE ? "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED" : "CUDA_ERROR_FAKE";
	return code == 12345 ? INVALID : OK;
}
int cuGetErrorString(int code, const char **s) { *s = code == NOMEM ? "out of memory" : "as planned"; return code == 12345 ? INVALID : OK; }
int cuDeviceGetCount(int *n) { *n = count; return 0; }
int cuDeviceGet(int *dev, int i) { *dev = i; return i < 0 || i >= count ? BAD_DEVICE : OK; }
int cuDeviceGetName(char *s, int n, int dev) { snprintf(s, n, "Fake GPU %d", dev); return 0; }
int cuDeviceGetUuid_v2(char *u, int dev) { for (int i = 0; i < 16; i++) u[i] = 16 * (dev + 1) + i; return 0; }
int cuDeviceGetPCIBusId(char *s, int n, int dev) { snprintf(s, n, "0000:%02X:00.0", 0x3a + dev); return 0; }
int cuDeviceGetByPCIBusId(int *dev, const char *s) { return INVALID; }
int cuDeviceTotalMem_v2(size_t *n, int dev) { *n = (size_t)80 << 30; return 0; }
int cuDeviceGetAttribute(int *v, int attr, int dev) {
	*v = attr == 75 ? 9 : attr == 16 ? 132 : attr == 97 ? 232448 : attr == 38 ? 50 << 20 : attr == 134 ? dev
		: attr == 102 || attr == 103 ? vmm : attr == 76 ? 0 : 1;
	return 0;
}
int cuDeviceCanAccessPeer(int *can, int a, int b) { *can = peers && a != b; return 0; }
int cuDeviceGetP2PAttribute(int *v, int attr, int a, int b) { *v = attr == 1 ? 0 : peers; return a == b ? INVALID : OK; }

int cuDevicePrimaryCtxRetain(struct ctx **c, int dev) {
	CALL("cuDevicePrimaryCtxRetain", "%d", dev);
	*c = &primary[dev];
	(*c)->device = dev, (*c)->refs++;
	return leave(OK);
}
int cuDevicePrimaryCtxRelease_v2(int dev) {
	CALL("cuDevicePrimaryCtxRelease", "%d", dev);
	if (!primary[dev].refs) return leave(NO_CONTEXT);
	primary[dev].refs--;
	return leave(OK);
}
int cuCtxPushCurrent_v2(struct ctx *c) {
	CALL("cuCtxPushCurrent", "%d", c ? c->device : -1);
	if (!c || !c->refs || depth == 16) return leave(NO_CONTEXT);
	stack[depth++] = c;
	return leave(OK);
}
int cuCtxPopCurrent_v2(struct ctx **c) {
	CALL("cuCtxPopCurrent", "%d", depth);
	if (!depth) return leave(NO_CONTEXT);
	*c = stack[--depth];
	return leave(OK);
}
int cuCtxGetCurrent(struct ctx **c) { *c = current(); return 0; }
int cuCtxGetDevice(int *dev) { CALL("cuCtxGetDevice", "%s", ""); NEED_CONTEXT; *dev = current()->device; return leave(OK); }
int cuCtxGetStreamPriorityRange(int *least, int *greatest) { *least = 0, *greatest = -5; return current() ? OK : NO_CONTEXT; }
int cuCtxEnablePeerAccess(struct ctx *c, u32 flags) {
	CALL("cuCtxEnablePeerAccess", "%d -> %d", current() ? current()->device : -1, c->device);
	NEED_CONTEXT;
	if (c == current()) return leave(BAD_DEVICE);
	if (current()->peers[c->device]++) return leave(PEER_TWICE);
	return leave(OK);
}
int cuCtxDisablePeerAccess(struct ctx *c) { return UNSUPPORTED; }
int cuThreadExchangeStreamCaptureMode(int *m) { int old = mode; mode = *m; *m = old; return 0; }

/* ---- streams ---- */

static int true_now(u64 w, u64 v, u64 flags, int wide) {
	switch (flags) {
	case 0: return wide ? (int64_t)(w - v) >= 0 : (int32_t)(w - v) >= 0;
	case 1: return w == v;
	case 2: return (w & v) != 0;
	default: return wide ? ~(w | v) != 0 : (u32)~(w | v) != 0;
	}
}

static void run(struct op *o) {
	u64 dst, src;
	if (o->func->host && o->func->host(o->a, o->b, 0, o->args)) fprintf(stderr, "%s: threads wait for others that never come\n", o->func->name), abort();
	if (o->func->host) return;
	u32 v, n;
	memcpy(&dst, o->args, 8);
	if (!strcmp(o->func->name, "fill")) {
		memcpy(&v, o->args + 8, 4), memcpy(&n, o->args + 12, 4);
		for (u32 i = 0; i < n; i++) ((u32 *)dst)[i] = v + i;
	} else if (!strcmp(o->func->name, "add")) {
		memcpy(&src, o->args + 8, 8), memcpy(&n, o->args + 16, 4);
		for (u32 i = 0; i < n; i++) ((u32 *)dst)[i] += ((u32 *)src)[i];
	} else if (!strcmp(o->func->name, "top")) {
		memcpy((u32 *)dst, o->args + 8, 4);
	}
}

/* step does one operation, or says that it must wait. */
static int step(struct op *o) {
	switch (o->kind) {
	case COPY: memmove((void *)o->a, (void *)o->b, o->n); break;
	case SET8: memset((void *)o->a, o->v, o->n); break;
	case SET32: for (size_t i = 0; i < o->n; i++) ((u32 *)o->a)[i] = o->v; break;
	case RECORD:
		if (o->event) o->event->shared->done = o->v; else passed[o->v] = 1;
		break;
	case WAIT_EVENT: return o->event ? o->event->shared->done >= o->v : passed[o->v];
	case WAIT32: return true_now(__atomic_load_n((u32 *)o->a, __ATOMIC_ACQUIRE), o->v, o->b, 0);
	case WAIT64: return true_now(__atomic_load_n((u64 *)o->a, __ATOMIC_ACQUIRE), o->v, o->b, 1);
	case WRITE32: __atomic_store_n((u32 *)o->a, o->v, __ATOMIC_RELEASE); break;
	case WRITE64: __atomic_store_n((u64 *)o->a, o->v, __ATOMIC_RELEASE); break;
	case KERNEL: run(o); break;
	case RELEASE: if (find(o->a)) drop(find(o->a)); break;
	}
	return 1;
}

static void pump(void) {
	for (int moved = 1; moved;) {
		moved = 0;
		for (struct stream *s = streams; s; s = s->next)
			while (s->head && step(s->head)) {
				struct op *o = s->head;
				s->head = o->next;
				if (!s->head) s->tail = 0;
				free(o);
				moved = 1;
			}
	}
}

static void append(struct op **head, struct op **tail, struct op o) {
	struct op *p = malloc(sizeof *p);
	*p = o, p->next = 0;
	if (*tail) (*tail)->next = p; else *head = p;
	*tail = p;
}

static struct stream *known(struct stream *s) {
	if (s == 0 || s == (void *)1) {
		if (!legacy.ctx) legacy.next = streams, streams = &legacy;
		legacy.ctx = current();
		return &legacy;
	}
	for (struct stream *t = streams; t; t = t->next)
		if (t == s && t->alive) return t;
	return 0;
}

static int queue(struct stream *s, struct op o, int needs) {
	s = known(s);
	if (needs && !current()) return NO_CONTEXT;
	if (!s) return BAD_HANDLE;
	if (needs && current() != s->ctx) return BAD_HANDLE;
	if (s->broken) return INVALIDATED;
	if (s->graph) append(&s->graph->head, &s->graph->tail, o);
	else append(&s->head, &s->tail, o);
	return OK;
}

int cuStreamCreateWithPriority(struct stream **s, u32 flags, int priority) {
	CALL("cuStreamCreateWithPriority", "%u %d", flags, priority);
	NEED_CONTEXT;
	*s = calloc(1, sizeof **s);
	(*s)->ctx = current(), (*s)->alive = 1, (*s)->next = streams;
	(*s)->priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
	streams = *s;
	return leave(OK);
}
int cuStreamDestroy_v2(struct stream *s) {
	CALL("cuStreamDestroy", "%d", s->priority);
	NEED_CONTEXT;
	if (!known(s)) return leave(BAD_HANDLE);
	s->alive = 0; /* what is queued still runs */
	pump();
	return leave(OK);
}
int cuStreamGetCtx(struct stream *s, struct ctx **c) {
	CALL("cuStreamGetCtx", "%s", "");
	NEED_CONTEXT;
	if (!(s = known(s))) return leave(BAD_HANDLE);
	*c = s->ctx;
	return leave(OK);
}
int cuStreamGetPriority(struct stream *s, int *p) { *p = s->priority; return 0; }
int cuStreamIsCapturing(struct stream *s, int *state) {
	CALL("cuStreamIsCapturing", "%s", "");
	if (!(s = known(s))) return leave(BAD_HANDLE);
	*state = s->graph ? s->broken ? 2 : 1 : 0;
	return leave(OK);
}
int cuStreamBeginCapture_v2(struct stream *s, int m) {
	CALL("cuStreamBeginCapture", "%d", m);
	if (!(s = known(s)) || s->graph) return leave(BAD_HANDLE);
	s->graph = calloc(1, sizeof *s->graph), s->mode = m, s->broken = 0;
	return leave(OK);
}
int cuStreamEndCapture(struct stream *s, struct graph **g) {
	CALL("cuStreamEndCapture", "%s", "");
	if (!(s = known(s)) || !s->graph) return leave(BAD_HANDLE);
	int broken = s->broken;
	struct graph *made = s->graph;
	for (struct stream *t = streams; t; t = t->next) /* and what was drawn in */
		if (t->graph == made) t->graph = 0, t->broken = 0;
	*g = broken ? 0 : made;
	return leave(broken ? INVALIDATED : OK);
}
int cuGraphInstantiateWithFlags(struct graph **x, struct graph *g, u64 flags) {
	CALL("cuGraphInstantiate", "%s", "");
	NEED_CONTEXT;
	*x = calloc(1, sizeof **x);
	for (struct op *o = g->head; o; o = o->next) append(&(*x)->head, &(*x)->tail, *o);
	return leave(OK);
}
int cuGraphLaunch(struct graph *x, struct stream *s) {
	CALL("cuGraphLaunch", "%s", "");
	int code = OK;
	for (struct op *o = x->head; o && !code; o = o->next)
		code = queue(s, *o, 1);
	return leave(code);
}
static void forget(struct graph *g) { for (struct op *o = g->head, *n; o; o = n) n = o->next, free(o); free(g); }
int cuGraphExecDestroy(struct graph *x) { CALL("cuGraphExecDestroy", "%s", ""); forget(x); return leave(OK); }
int cuGraphDestroy(struct graph *g) { CALL("cuGraphDestroy", "%s", ""); forget(g); return leave(OK); }

/* ---- events ---- */

int cuEventCreate(struct event **e, u32 flags) {
	CALL("cuEventCreate", "%u", flags);
	NEED_CONTEXT;
	UNSAFE_CALL;
	struct event *v = *e = calloc(1, sizeof *v);
	v->ctx = current(), v->alive = 1, v->fd = -1;
	if (flags & 4) {
		v->fd = memfd_create("fake-event", MFD_CLOEXEC);
		if (ftruncate(v->fd, 4096)) return leave(NOMEM);
		v->shared = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, v->fd, 0);
	}
	return leave(OK);
}
int cuEventDestroy_v2(struct event *e) {
	CALL("cuEventDestroy", "%s", "");
	NEED_CONTEXT;
	if (!e->alive) return leave(BAD_HANDLE);
	e->alive = 0;
	if (e->fd >= 0) { /* what is queued on it goes on, unseen by other processes */
		struct counts *own = malloc(sizeof *own), *shared = e->shared;
		*own = *shared, e->shared = own;
		munmap(shared, 4096), close(e->fd), e->fd = -1;
	}
	return leave(OK);
}
int cuEventRecord(struct event *e, struct stream *s) {
	CALL("cuEventRecord", "%s", "");
	if (!known(s)) return leave(BAD_HANDLE);
	if (known(s)->ctx != e->ctx) return leave(BAD_HANDLE);
	if ((e->captured = known(s)->graph != 0)) {
		e->into = known(s)->graph; /* what a stream that waits is drawn into */
		return leave(known(s)->broken ? INVALIDATED : OK);
	}
	struct op o = {.kind = RECORD};
	if (e->shared) o.event = e, o.v = ++e->shared->recorded;
	else o.v = e->mark = ++marks % sizeof passed, passed[o.v] = 0;
	return leave(queue(s, o, 1));
}
int cuEventQuery(struct event *e) {
	CALL("cuEventQuery", "%s", "");
	if (!e->alive) return leave(BAD_HANDLE);
	UNSAFE_CALL;
	if (e->captured) return leave(CAPTURED);
	pump();
	if (e->shared) return leave(e->shared->done >= e->shared->recorded ? OK : NOT_READY);
	return leave(!e->mark || passed[e->mark] ? OK : NOT_READY);
}
int cuEventElapsedTime(float *ms, struct event *a, struct event *b) { *ms = 1.5; return 0; }
int cuStreamWaitEvent(struct stream *s, struct event *e, u32 flags) {
	CALL("cuStreamWaitEvent", "%s", "");
	NEED_CONTEXT;
	if (!(s = known(s))) return leave(BAD_HANDLE);
	if (e->fd >= 0 && e->ctx->device != s->ctx->device) {
		fprintf(stderr, "cuStreamWaitEvent: an event between processes, of another GPU: libcuda crashes here\n");
		raise(SIGSEGV);
	}
	if (e->captured) s->graph = e->into;
	if (e->captured || s->graph) return leave(OK);
	if (e->shared) return leave(queue(s, (struct op){.kind = WAIT_EVENT, .event = e, .v = e->shared->recorded}, 1));
	return leave(e->mark ? queue(s, (struct op){.kind = WAIT_EVENT, .v = e->mark}, 1) : OK);
}

/* ---- memory ---- */

int cuMemGetInfo_v2(size_t *free, size_t *total) { *total = (size_t)80 << 30, *free = *total - 1; return current() ? OK : NO_CONTEXT; }
int cuMemAlloc_v2(u64 *addr, size_t n) {
	CALL("cuMemAlloc", "%zu", n);
	NEED_CONTEXT;
	UNSAFE_CALL;
	struct span *s = n > (size_t)80 << 30 ? 0 : make(n, DEVICE_MEMORY, current()->device);
	if (!s) return leave(NOMEM);
	*addr = s->at;
	return leave(OK);
}
static int give_back(u64 addr, int kind) {
	struct span *s = exact(addr, kind);
	if (!current()) return NO_CONTEXT;
	if (unsafe_call()) return UNSAFE;
	if (!s) return INVALID;
	pump();
	drop(s);
	return OK;
}
int cuMemFree_v2(u64 addr) { CALL("cuMemFree", "%s", ""); return leave(give_back(addr, DEVICE_MEMORY)); }
int cuMemHostAlloc(u64 *p, size_t n, u32 flags) {
	CALL("cuMemHostAlloc", "%zu %u", n, flags);
	NEED_CONTEXT;
	UNSAFE_CALL;
	*p = make(n, PINNED, current()->device)->at;
	return leave(OK);
}
int cuMemFreeHost(u64 p) { CALL("cuMemFreeHost", "%s", ""); return leave(give_back(p, PINNED)); }
int cuMemHostRegister_v2(u64 p, size_t n, u32 flags) {
	CALL("cuMemHostRegister", "%zu %u", n, flags);
	NEED_CONTEXT;
	if (find(p)) return leave(712);
	add(p, n, -1, REGISTERED, current()->device);
	return leave(OK);
}
int cuMemHostUnregister(u64 p) { CALL("cuMemHostUnregister", "%s", ""); return leave(give_back(p, REGISTERED)); }
int cuMemHostGetDevicePointer_v2(u64 *d, u64 p, u32 flags) {
	CALL("cuMemHostGetDevicePointer", "%u", flags);
	*d = p;
	return leave(find(p) ? OK : INVALID);
}
int cuMemcpyAsync(u64 dst, u64 src, size_t n, struct stream *s) {
	CALL("cuMemcpyAsync", "%zu", n);
	return leave(queue(s, (struct op){.kind = COPY, .a = dst, .b = src, .n = n}, 1));
}
int cuMemcpyPeerAsync(u64 dst, struct ctx *to, u64 src, struct ctx *from, size_t n, struct stream *s) {
	CALL("cuMemcpyPeerAsync", "%d <- %d %zu", to->device, from->device, n);
	return leave(queue(s, (struct op){.kind = COPY, .a = dst, .b = src, .n = n}, 1));
}
int cuMemsetD8Async(u64 dst, unsigned char v, size_t n, struct stream *s) {
	CALL("cuMemsetD8Async", "%u %zu", v, n);
	return leave(queue(s, (struct op){.kind = SET8, .a = dst, .v = v, .n = n}, 1));
}
int cuMemsetD32Async(u64 dst, u32 v, size_t n, struct stream *s) {
	CALL("cuMemsetD32Async", "%u %zu", v, n);
	return leave(queue(s, (struct op){.kind = SET32, .a = dst, .v = v, .n = n}, 1));
}

struct props { int kind, handles, where, device; u64 windows; size_t most; };
int cuMemPoolCreate(struct props **p, struct props *props) {
	CALL("cuMemPoolCreate", "%d %d %d %d", props->kind, props->handles, props->where, props->device);
	if (props->kind != 1 || props->where != 1) return leave(INVALID);
	*p = malloc(sizeof **p), **p = *props;
	return leave(OK);
}
int cuMemPoolDestroy(struct props *p) { CALL("cuMemPoolDestroy", "%d", p->device); free(p); return leave(OK); }
int cuMemPoolSetAttribute(struct props *p, int attr, u64 *v) { CALL("cuMemPoolSetAttribute", "%d %lu", attr, *v); return leave(OK); }
int cuMemPoolTrimTo(struct props *p, size_t keep) { CALL("cuMemPoolTrimTo", "%zu", keep); return leave(OK); }
int cuMemPoolSetAccess(struct props *p, int *desc, size_t n) {
	CALL("cuMemPoolSetAccess", "%d %d %d x%zu", desc[0], desc[1], desc[2], n);
	return leave(desc[0] == 1 && desc[2] == 3 ? OK : INVALID);
}
int cuMemAllocFromPoolAsync(u64 *addr, size_t n, struct props *p, struct stream *s) {
	CALL("cuMemAllocFromPoolAsync", "%zu", n);
	NEED_CONTEXT;
	*addr = make(n, FROM_POOL, p->device)->at;
	return leave(OK);
}
int cuMemFreeAsync(u64 addr, struct stream *s) {
	CALL("cuMemFreeAsync", "%s", "");
	if (!exact(addr, FROM_POOL)) return leave(INVALID);
	return leave(queue(s, (struct op){.kind = RELEASE, .a = addr}, 1));
}

struct phys { int fd, device; size_t n; };
int cuMemGetAllocationGranularity(size_t *n, struct props *p, int option) {
	CALL("cuMemGetAllocationGranularity", "%d %d %d %d", p->kind, p->handles, p->where, p->device);
	*n = STEP;
	return leave(OK);
}
int cuMemCreate(struct phys **h, size_t n, struct props *p, u64 flags) {
	CALL("cuMemCreate", "%zu", n);
	UNSAFE_CALL;
	if (n % STEP || p->kind != 1 || p->handles != 1 || p->where != 1) return leave(INVALID);
	*h = malloc(sizeof **h);
	**h = (struct phys){memfd_create("fake-vmm", MFD_CLOEXEC), p->device, n};
	return leave(ftruncate((*h)->fd, n) ? NOMEM : OK);
}
int cuMemRelease(struct phys *h) { CALL("cuMemRelease", "%zu", h->n); close(h->fd); free(h); return leave(OK); }
int cuMemExportToShareableHandle(int *fd, struct phys *h, int type, u64 flags) {
	CALL("cuMemExportToShareableHandle", "%d", type);
	*fd = dup(h->fd); /* as the driver: without close-on-exec */
	return leave(OK);
}
int cuMemImportFromShareableHandle(struct phys **h, u64 fd, int type) {
	CALL("cuMemImportFromShareableHandle", "%d", type);
	struct stat st;
	if (fstat(fd, &st) || st.st_size % STEP || !st.st_size) return leave(INVALID);
	*h = malloc(sizeof **h);
	**h = (struct phys){fcntl(fd, F_DUPFD_CLOEXEC, 0), 0, st.st_size};
	return leave(OK);
}
int cuMemAddressReserve(u64 *addr, size_t n, size_t align, u64 at, u64 flags) {
	CALL("cuMemAddressReserve", "%zu", n);
	*addr = (u64)mmap(0, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	add(*addr, n, -1, RESERVED, 0);
	return leave(OK);
}
static struct span *reserved(u64 addr) {
	for (int i = 0; i < MANY; i++) if (spans[i].at == addr && spans[i].kind == RESERVED) return &spans[i];
	return 0;
}
int cuMemAddressFree(u64 addr, size_t n) {
	CALL("cuMemAddressFree", "%zu", n);
	struct span *s = reserved(addr);
	if (!s || s->n != n || find(addr)) return leave(INVALID);
	drop(s);
	return leave(OK);
}
int cuMemMap(u64 addr, size_t n, size_t off, struct phys *h, u64 flags) {
	CALL("cuMemMap", "%zu", n);
	if (!reserved(addr) || n != h->n) return leave(INVALID);
	mmap((void *)addr, n, PROT_NONE, MAP_SHARED | MAP_FIXED, h->fd, 0);
	add(addr, n, -1, MAPPED, h->device);
	return leave(OK);
}
int cuMemUnmap(u64 addr, size_t n) {
	CALL("cuMemUnmap", "%zu", n);
	struct span *s = exact(addr, MAPPED);
	if (!s || s->n != n) return leave(INVALID);
	mmap((void *)addr, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	memset(s, 0, sizeof *s);
	return leave(OK);
}
int cuMemSetAccess(u64 addr, size_t n, int *desc, size_t count) {
	CALL("cuMemSetAccess", "%d %d %d x%zu", desc[0], desc[1], desc[2], count);
	if (!exact(addr, MAPPED) || desc[0] != 1 || desc[2] != 3) return leave(INVALID);
	return leave(mprotect((void *)addr, n, PROT_READ | PROT_WRITE) ? INVALID : OK);
}

int cuPointerGetAttributes(u32 n, u32 *attrs, void **data, u64 addr) {
	CALL("cuPointerGetAttributes", "%u", n);
	NEED_CONTEXT;
	struct span *s = find(addr);
	int host = s && (s->kind == PINNED || s->kind == REGISTERED);
	for (u32 i = 0; s && i < n; i++) {
		u64 v = 0;
		switch (attrs[i]) {
		case 2: v = host ? 1 : 2; break;
		case 9: v = s->device; break;
		case 1: v = s->kind == DEVICE_MEMORY ? (u64)&primary[s->device] : 0; break;
		case 11: v = s->at; break;
		case 12: v = s->n; break;
		case 7: v = s->id; break;
		case 10: v = s->kind == DEVICE_MEMORY; break;
		case 14: v = s->kind == MAPPED; break;
		case 17: v = s->kind == FROM_POOL; break;
		}
		if (attrs[i] == 2 || attrs[i] == 9) *(u32 *)data[i] = v;
		else if (attrs[i] == 8 || attrs[i] == 10) *(char *)data[i] = v;
		else *(u64 *)data[i] = v;
	}
	return leave(OK);
}

/* ---- between processes ---- */

struct ticket { int pid, fd; size_t n; };
int cuIpcGetMemHandle(raw_handle *h, u64 addr) {
	CALL("cuIpcGetMemHandle", "%s", "");
	NEED_CONTEXT;
	struct span *s = exact(addr, DEVICE_MEMORY);
	if (!s) return leave(INVALID);
	struct ticket t = {getpid(), s->fd, s->n};
	memset(h, 0x5a, sizeof *h), memcpy(h, &t, sizeof t);
	return leave(OK);
}
static int fetch(struct ticket t) {
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/fd/%d", t.pid, t.fd);
	return open(path, O_RDWR | O_CLOEXEC);
}
int cuIpcOpenMemHandle_v2(u64 *addr, raw_handle h, u32 flags) {
	CALL("cuIpcOpenMemHandle", "%u", flags);
	NEED_CONTEXT;
	struct ticket t;
	memcpy(&t, &h, sizeof t);
	if (h.b[63] != 0x5a) return leave(INVALID);
	for (int i = 0; i < MANY; i++)
		if (spans[i].kind == OPENED && spans[i].pid == t.pid && spans[i].remote == t.fd) {
			spans[i].refs++, *addr = spans[i].at;
			return leave(OK);
		}
	int fd = t.pid == getpid() ? -1 : fetch(t);
	if (fd < 0) return leave(NO_CONTEXT);
	*addr = (u64)mmap(0, (t.n + 4095) / 4096 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	struct span *s = add(*addr, t.n, fd, OPENED, 0);
	s->pid = t.pid, s->remote = t.fd;
	return leave(OK);
}
int cuIpcCloseMemHandle(u64 addr) {
	CALL("cuIpcCloseMemHandle", "%s", "");
	NEED_CONTEXT;
	struct span *s = exact(addr, OPENED);
	if (!s) return leave(INVALID);
	pump();
	if (--s->refs == 0) drop(s);
	return leave(OK);
}
int cuIpcGetEventHandle(raw_handle *h, struct event *e) {
	CALL("cuIpcGetEventHandle", "%s", "");
	if (e->fd < 0) return leave(INVALID);
	struct ticket t = {getpid(), e->fd, 0};
	memset(h, 0x6b, sizeof *h), memcpy(h, &t, sizeof t);
	return leave(OK);
}
int cuIpcOpenEventHandle(struct event **e, raw_handle h) {
	CALL("cuIpcOpenEventHandle", "%s", "");
	NEED_CONTEXT;
	struct ticket t;
	memcpy(&t, &h, sizeof t);
	int fd = h.b[63] == 0x6b ? fetch(t) : -1;
	if (fd < 0) return leave(INVALID);
	*e = calloc(1, sizeof **e);
	(*e)->ctx = current(), (*e)->alive = 1, (*e)->fd = fd;
	(*e)->shared = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return leave(OK);
}

/* ---- words ---- */

int cuStreamWaitValue32_v2(struct stream *s, u64 a, u32 v, u32 f) { CALL("cuStreamWaitValue32", "%u %u", v, f); return leave(queue(s, (struct op){.kind = WAIT32, .a = a, .b = f, .v = v}, 0)); }
int cuStreamWaitValue64_v2(struct stream *s, u64 a, u64 v, u32 f) { CALL("cuStreamWaitValue64", "%lu %u", v, f); return leave(queue(s, (struct op){.kind = WAIT64, .a = a, .b = f, .v = v}, 0)); }
int cuStreamWriteValue32_v2(struct stream *s, u64 a, u32 v, u32 f) { CALL("cuStreamWriteValue32", "%u %u", v, f); return leave(queue(s, (struct op){.kind = WRITE32, .a = a, .v = v}, 0)); }
int cuStreamWriteValue64_v2(struct stream *s, u64 a, u64 v, u32 f) { CALL("cuStreamWriteValue64", "%lu %u", v, f); return leave(queue(s, (struct op){.kind = WRITE64, .a = a, .v = v}, 0)); }
struct item { u32 op, pad; u64 addr, value; u32 flags, pad2; u64 alias, pad3; };
int cuStreamBatchMemOp_v2(struct stream *s, u32 n, struct item *items, u32 flags) {
	CALL("cuStreamBatchMemOp", "%u", n);
	static const int kinds[] = {0, WAIT32, WRITE32, 0, WAIT64, WRITE64};
	int code = OK;
	for (u32 i = 0; i < n && !code; i++) {
		if (items[i].op > 5 || !kinds[items[i].op]) return leave(INVALID);
		note("  %u %lu %u", items[i].op, items[i].value, items[i].flags);
		code = queue(s, (struct op){.kind = kinds[items[i].op], .a = items[i].addr, .b = items[i].flags, .v = items[i].value}, 0);
	}
	return leave(code);
}

/* ---- code ---- */

/* hosted is the library of kernels for the host, 0 without one. */
static void *hosted(void) {
	static void *lib;
	const char *path = getenv("FAKECUDA_KERNELS");
	if (!lib && path && !(lib = dlopen(path, RTLD_NOW))) fprintf(stderr, "%s\n", dlerror()), abort();
	return lib;
}
int cuModuleLoadDataEx(struct module **m, const char *image, u32 n, u32 *options, void **values) {
	CALL("cuModuleLoadDataEx", "%u %u %u %lu", n, options[0], options[1], (u64)values[1]);
	NEED_CONTEXT;
	if (!memcmp(image, "\177ELF", 4) && hosted()) {
		*m = calloc(1, sizeof **m);
		(*m)->ctx = current(), (*m)->text = strdup("");
		return leave(OK);
	}
	if (!strstr(image, ".version")) {
		snprintf(values[0], (u64)values[1], "fake ptxas: no .version\nin line 1");
		return leave(BAD_IMAGE);
	}
	*m = calloc(1, sizeof **m);
	(*m)->ctx = current(), (*m)->text = strdup(image), (*m)->answer = 42;
	return leave(OK);
}
int cuModuleUnload(struct module *m) { CALL("cuModuleUnload", "%s", ""); NEED_CONTEXT; free(m->text); free(m); return leave(OK); }
int cuModuleGetFunction(struct func **f, struct module *m, const char *name) {
	CALL("cuModuleGetFunction", "%s", name);
	NEED_CONTEXT;
	char entry[96];
	snprintf(entry, sizeof entry, ".entry %s(", name);
	char symbol[96];
	snprintf(symbol, sizeof symbol, "host_%s", name);
	void *host = hosted() ? dlsym(hosted(), symbol) : 0;
	if (!host && !strstr(m->text, entry)) return leave(NOT_FOUND);
	*f = &m->funcs[m->n++];
	(*f)->module = m, (*f)->shared = 49152, (*f)->host = host;
	snprintf((*f)->name, sizeof (*f)->name, "%s", name);
	return leave(OK);
}
int cuModuleGetGlobal_v2(u64 *addr, size_t *n, struct module *m, const char *name) {
	CALL("cuModuleGetGlobal", "%s", name);
	NEED_CONTEXT;
	if (strcmp(name, "answer")) return leave(NOT_FOUND);
	*addr = (u64)&m->answer, *n = 8;
	return leave(OK);
}
int cuFuncLoad(struct func *f) { CALL("cuFuncLoad", "%s", f->name); return leave(OK); }
int cuFuncGetAttribute(int *v, int attr, struct func *f) {
	CALL("cuFuncGetAttribute", "%d", attr);
	NEED_CONTEXT;
	*v = attr == 0 ? 1024 : attr == 4 ? 12 : attr == 5 ? 70 : attr == 6 ? 90 : attr == 8 ? f->shared : 0;
	return leave(OK);
}
int cuFuncSetAttribute(struct func *f, int attr, int v) { CALL("cuFuncSetAttribute", "%d %d", attr, v); NEED_CONTEXT; f->shared = v; return leave(OK); }
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n, struct func *f, int threads, size_t shared) {
	CALL("cuOccupancy", "%d %zu", threads, shared);
	NEED_CONTEXT;
	*n = threads > 1024 ? 0 : 2048 / threads;
	if (shared && 233472 / (int)(shared + 1024) < *n) *n = 233472 / (int)(shared + 1024);
	return leave(OK);
}
struct config { u32 grid[3], block[3], shared, pad; struct stream *s; struct { u32 id, pad, v[16]; } *attrs; u32 n; };
int cuLaunchKernelEx(struct config *c, struct func *f, void **params, u64 *extra) {
	CALL("cuLaunchKernelEx", "%s grid %u %u %u block %u %u %u shared %u", f->name, c->grid[0], c->grid[1], c->grid[2],
		c->block[0], c->block[1], c->block[2], c->shared);
	for (u32 i = 0; i < c->n; i++) note("  attribute %u %u %u %u", c->attrs[i].id, c->attrs[i].v[0], c->attrs[i].v[1], c->attrs[i].v[2]);
	NEED_CONTEXT;
	if (f->module->ctx != current()) return leave(BAD_HANDLE);
	struct op o = {.kind = KERNEL, .func = f, .a = c->grid[0], .b = c->block[0]};
	const void *args = 0;
	for (; extra && extra[0]; extra += 2) {
		if (extra[0] == 1) args = (void *)extra[1];
		else if (extra[0] == 2) o.n = *(u64 *)extra[1];
	}
	note("  %zu bytes of arguments", o.n);
	if (o.n > sizeof o.args) return leave(INVALID);
	if (args) memcpy(o.args, args, o.n);
	return leave(queue(c->s, o, 1));
}
