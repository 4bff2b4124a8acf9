/*
 * A model of libnccl 2.28 for tests: ranks of one process, on devices whose memory
 * is memory of the host. Like NCCL it queues work on streams that runs when all
 * ranks have come to it, connects ranks at their first call (and blocks in it,
 * where a communicator blocks), launches from a thread of its own where it does
 * not, and lets a rank hang that nobody meets. It is strict: a call on a
 * communicator whose previous call is still in progress is InvalidArgument, one
 * without the right device InvalidUsage, and one after it was freed ends the process.
 * Like 2.28, splits and windows return Success while they go on in the background.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef uint64_t u64;
enum { OK, CUDA_ERROR, SYSTEM_ERROR, INTERNAL_ERROR, BAD_ARGUMENT, BAD_USAGE, REMOTE_ERROR, IN_PROGRESS };
enum { RANKS = 8, ROUNDS = 32, UNDEFINED = -2147483647 - 1 };
enum { ALLREDUCE, REDUCE, BROADCAST, ALLGATHER, REDUCESCATTER, SEND, RECV };
typedef struct { char b[128]; } id_t128;

struct config { size_t size; unsigned magic, version; int blocking, cga, min, max; char *net; int share, traffic; char *name; };
struct part { int kind, count, type, op, peer, done; double scale; char *in, *out; struct unit *unit; struct part *with, *next; };
struct unit { u64 *busy; void *stream; struct part *parts, *last; struct comm *comm; struct unit *next; }; /* one group */
struct coll { struct part *of[RANKS]; struct coll *next; };
struct lone { struct part *p; struct lone *next; };
struct way { struct lone *head, *tail; }; /* sends, or receives, that found no partner */
struct world {
	char key[32];
	int n, joined, round[RANKS], color[ROUNDS][RANKS], order[ROUNDS][RANKS]; /* of splits */
	struct comm *of[RANKS];
	struct coll *colls, *last;
	struct way sends[RANKS][RANKS], recvs[RANKS][RANKS];
	struct world *next;
};
struct comm {
	unsigned magic;
	struct world *w;
	int rank, device, blocking, state, aborted, threads, came, scales_used, windows;
	struct coll *at; /* the last collective of this rank */
	double scales[16];
	struct unit *units;
};
enum { ALIVE = 0x600d, FREED = 0xdead };

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static struct world *worlds;
static _Thread_local int depth;
static _Thread_local struct unit *group;
static int serial;

static struct { /* the driver */
	int (*get_device)(int *), (*retain)(void **, int), (*push)(void *), (*pop)(void **), (*alloc)(u64 *, size_t), (*free)(u64),
		(*write)(void *, u64, u64, unsigned), (*wait)(void *, u64, u64, unsigned);
} cu;

static void *contexts[8]; /* by device */
static void *worker(void *);

static int driver(void) {
	static int ready;
	static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_lock(&once);
	if (ready) return pthread_mutex_unlock(&once), 1;
	void *so = dlopen("libcuda.so.1", RTLD_NOW);
	if (!so) return pthread_mutex_unlock(&once), 0;
	cu.get_device = dlsym(so, "cuCtxGetDevice"), cu.retain = dlsym(so, "cuDevicePrimaryCtxRetain");
	cu.push = dlsym(so, "cuCtxPushCurrent_v2"), cu.pop = dlsym(so, "cuCtxPopCurrent_v2");
	cu.alloc = dlsym(so, "cuMemAlloc_v2"), cu.free = dlsym(so, "cuMemFree_v2");
	cu.write = dlsym(so, "cuStreamWriteValue64_v2"), cu.wait = dlsym(so, "cuStreamWaitValue64_v2");
	pthread_t t;
	pthread_create(&t, 0, worker, 0);
	ready = 1;
	pthread_mutex_unlock(&once);
	return 1;
}

static int current(void) { int dev; return driver() && cu.get_device(&dev) == 0 ? dev : -1; }

static void die(const char *what) { fprintf(stderr, "fakenccl: %s\n", what); abort(); }

static _Thread_local const char *last_error = "";

/* look is the check that every call on a communicator begins with. mu is held. */
static int look(struct comm *c, int may_be_busy) {
	if (!c || c->magic == FREED) die("a communicator was used after it was freed");
	if (c->magic != ALIVE) die("this is no communicator");
	if (!may_be_busy && c->state == IN_PROGRESS) {
		last_error = "Attempt to use communicator before the previous operation returned ncclSuccess";
		return BAD_ARGUMENT;
	}
	return may_be_busy || c->state == OK ? OK : c->state; /* a failure stays */
}

/* ---- elements ---- */

static float half(uint16_t h) {
	unsigned s = (h & 0x8000u) << 16, e = h >> 10 & 31, m = h & 1023, u;
	if (e == 0) { float f = m / 16777216.0f; return s ? -f : f; }
	u = s | (e == 31 ? 0x7f800000u | m << 13 : (e + 112) << 23 | m << 13);
	float f;
	memcpy(&f, &u, 4);
	return f;
}
static uint16_t to_half(float f) {
	unsigned u, s;
	memcpy(&u, &f, 4);
	s = u >> 16 & 0x8000, u &= 0x7fffffff;
	if (u > 0x7f800000) return s | 0x7e00;
	if (u >= 0x477ff000) return s | 0x7c00;
	if (u < 0x38800000) { /* a subnormal: let the addition round it */
		float x;
		memcpy(&x, &u, 4);
		x += 0.5f;
		memcpy(&u, &x, 4);
		return s | (u - 0x3f000000);
	}
	return s | ((u + 0xfff + (u >> 13 & 1) - 0x38000000) >> 13);
}
static float brain(uint16_t b) { unsigned u = (unsigned)b << 16; float f; memcpy(&f, &u, 4); return f; }
static uint16_t to_brain(float f) {
	unsigned u;
	memcpy(&u, &f, 4);
	if ((u & 0x7fffffff) > 0x7f800000) return u >> 16 | 0x40;
	return (u + 0x7fff + (u >> 16 & 1)) >> 16;
}

static const int sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};

static double load(char *p, int t, int i) {
	switch (t) {
	case 6: return half(((uint16_t *)p)[i]);
	case 7: return ((float *)p)[i];
	case 8: return ((double *)p)[i];
	case 9: return brain(((uint16_t *)p)[i]);
	}
	return 0;
}
static void store(char *p, int t, int i, double v) {
	switch (t) {
	case 6: ((uint16_t *)p)[i] = to_half(v); return;
	case 7: ((float *)p)[i] = v; return;
	case 8: ((double *)p)[i] = v; return;
	case 9: ((uint16_t *)p)[i] = to_brain(v); return;
	}
}
static int64_t whole(char *p, int t, int i) {
	switch (t) {
	case 0: return ((int8_t *)p)[i];
	case 1: return ((uint8_t *)p)[i];
	case 2: return ((int32_t *)p)[i];
	case 3: return ((uint32_t *)p)[i];
	}
	return ((int64_t *)p)[i];
}
static void put_whole(char *p, int t, int i, int64_t v) {
	if (sizes[t] == 1) ((int8_t *)p)[i] = v;
	else if (sizes[t] == 4) ((int32_t *)p)[i] = v;
	else ((int64_t *)p)[i] = v;
}

/* reduce_into combines element i of all ranks' inputs into element j of out. */
static void reduce_into(struct part **p, int n, int i, char *out, int j) {
	int t = p[0]->type, op = p[0]->op;
	if (t >= 6) {
		double a = 0;
		for (int r = 0; r < n; r++) {
			double x = load(p[r]->in, t, i);
			if (op > 4) x *= p[r]->scale;
			a = r == 0 ? x : op == 1 ? a * x : op == 2 ? (x > a ? x : a) : op == 3 ? (x < a ? x : a) : a + x;
			if (t != 8) { char w[8]; store(w, t, 0, a); a = load(w, t, 0); }
		}
		store(out, t, j, op == 4 ? a / n : a);
		return;
	}
	int64_t a = 0;
	for (int r = 0; r < n; r++) {
		int64_t x = whole(p[r]->in, t, i);
		int more = t == 5 ? (u64)x > (u64)a : x > a;
		a = r == 0 ? x : op == 1 ? (int64_t)((u64)a * (u64)x) : op == 2 ? (more ? x : a) : op == 3 ? (more ? a : x) : (int64_t)((u64)a + (u64)x);
		char w[8];
		put_whole(w, t, 0, a), a = whole(w, t, 0);
	}
	if (op == 4) a = t == 5 ? (int64_t)((u64)a / n) : a / n;
	put_whole(out, t, j, a);
}

/* ---- work ---- */

static int active(struct part *p) { return p && __atomic_load_n(p->unit->busy, __ATOMIC_ACQUIRE) == 1 && !p->done && !p->unit->comm->aborted; }

static void perform(struct part **p, int n) {
	size_t size = sizes[p[0]->type], in = 0, count = p[0]->count;
	char *copies[RANKS], *outs[RANKS];
	int kind = p[0]->kind;
	for (int r = 0; r < n; r++) { /* inputs first: they may be outputs */
		in = size * count * (kind == REDUCESCATTER ? n : 1);
		copies[r] = malloc(in), outs[r] = p[r]->in;
		if (p[r]->in) memcpy(copies[r], p[r]->in, in);
		p[r]->in = copies[r];
	}
	for (int r = 0; r < n; r++) {
		char *out = p[r]->out;
		switch (kind) {
		case ALLREDUCE: case REDUCE:
			for (size_t i = 0; i < count && (kind == ALLREDUCE || r == p[0]->peer); i++) reduce_into(p, n, i, out, i);
			break;
		case REDUCESCATTER: for (size_t i = 0; i < count; i++) reduce_into(p, n, r * count + i, out, i); break;
		case BROADCAST: memcpy(out, copies[p[0]->peer], in); break;
		case ALLGATHER: for (int q = 0; q < n; q++) memcpy(out + q * in, copies[q], in); break;
		}
	}
	for (int r = 0; r < n; r++) free(copies[r]), p[r]->in = outs[r], p[r]->done = 1;
}

/* work does what all sides of are there for, again and again. mu is held. */
static void work(void) {
	for (struct world *w = worlds; w; w = w->next) {
		for (struct coll *c = w->colls; c; c = c->next) {
			int all = 1;
			for (int r = 0; r < w->n; r++) all = all && active(c->of[r]) && c->of[r]->kind == c->of[0]->kind && c->of[r]->count == c->of[0]->count;
			if (all) perform(c->of, w->n);
		}
		for (int r = 0; r < w->n; r++)
			for (struct unit *u = w->of[r] ? w->of[r]->units : 0; u; u = u->next) {
				int left = 0;
				for (struct part *p = u->parts; p; p = p->next) {
					if (p->kind == SEND && active(p) && active(p->with) && p->count == p->with->count) {
						memmove(p->with->out, p->in, (size_t)p->count * sizes[p->type]);
						p->done = p->with->done = 1;
					}
					left += !p->done;
				}
				if ((!left || u->comm->aborted) && __atomic_load_n(u->busy, __ATOMIC_ACQUIRE) == 1) {
					for (struct part *p = u->parts; p; p = p->next) p->done = 0; /* a graph may bring it again */
					__atomic_store_n(u->busy, 0, __ATOMIC_RELEASE);
				}
			}
	}
}

static void *worker(void *unused) {
	for (;;) {
		pthread_mutex_lock(&mu);
		work();
		pthread_mutex_unlock(&mu);
		usleep(20);
	}
	return unused;
}

/* match finds the partners of a unit's parts. mu is held. */
static void match(struct comm *c, struct unit *u) {
	struct world *w = c->w;
	for (struct part *p = u->parts; p; p = p->next) {
		if (p->kind < SEND) {
			struct coll *next = c->at ? c->at->next : w->colls;
			if (!next) {
				next = calloc(1, sizeof *next);
				if (w->last) w->last->next = next; else w->colls = next;
				w->last = next;
			}
			next->of[c->rank] = p, c->at = next;
			continue;
		}
		int from = p->kind == SEND ? c->rank : p->peer, to = p->kind == SEND ? p->peer : c->rank;
		struct way *mine = p->kind == SEND ? &w->sends[from][to] : &w->recvs[from][to];
		struct way *other = p->kind == SEND ? &w->recvs[from][to] : &w->sends[from][to];
		if (other->head) {
			p->with = other->head->p, p->with->with = p;
			if (!(other->head = other->head->next)) other->tail = 0;
			continue;
		}
		struct lone *l = calloc(1, sizeof *l);
		l->p = p;
		if (mine->tail) mine->tail->next = l; else mine->head = l;
		mine->tail = l;
	}
}

/* ---- launching ---- */

/* connected waits until every rank has made its first collective call, as NCCL
 * does to connect them. mu is held. */
static int connected(struct comm *c, struct unit *u) {
	int collective = 0;
	for (struct part *p = u->parts; p; p = p->next) collective |= p->kind < SEND;
	if (!collective) return OK;
	c->came = 1;
	pthread_cond_broadcast(&moved);
	for (;;) {
		int all = 1;
		for (int r = 0; r < c->w->n; r++) all = all && c->w->of[r] && c->w->of[r]->came;
		if (all) return OK;
		if (c->aborted) return SYSTEM_ERROR;
		pthread_cond_wait(&moved, &mu);
	}
}

/* launch puts a unit on its stream. mu is held, and given up meanwhile. */
static int launch(struct unit *u) {
	struct comm *c = u->comm;
	int code = connected(c, u);
	if (code) return code;
	match(c, u);
	u->next = 0;
	struct unit **end = &c->units;
	while (*end) end = &(*end)->next;
	*end = u;
	pthread_mutex_unlock(&mu);
	void *was;
	code = cu.push(contexts[c->device]) || cu.write(u->stream, (u64)u->busy, 1, 0) || cu.wait(u->stream, (u64)u->busy, 0, 1);
	code = cu.pop(&was) || code;
	pthread_mutex_lock(&mu);
	return code ? CUDA_ERROR : OK;
}

static void *behind(void *arg) {
	struct unit *u = arg;
	usleep(50);
	pthread_mutex_lock(&mu);
	int code = launch(u);
	u->comm->state = code;
	u->comm->threads--;
	pthread_cond_broadcast(&moved);
	pthread_mutex_unlock(&mu);
	return 0;
}

static int flush(void) {
	struct unit *u = group;
	group = 0;
	if (!u) return OK;
	pthread_mutex_lock(&mu);
	int code;
	if (u->comm->blocking) code = launch(u);
	else {
		pthread_t t;
		u->comm->state = code = IN_PROGRESS;
		u->comm->threads++;
		pthread_create(&t, 0, behind, u);
		pthread_detach(t);
	}
	pthread_mutex_unlock(&mu);
	return code;
}

int ncclGroupStart(void) { depth++; return OK; }
int ncclGroupEnd(void) {
	if (depth == 0) return BAD_USAGE;
	return --depth ? OK : flush();
}

static int add(struct comm *c, void *stream, struct part p) {
	pthread_mutex_lock(&mu);
	int code = look(c, 0);
	if (!code && current() != c->device) code = BAD_USAGE;
	if (!code && (p.type < 0 || p.type > 9 || p.peer < 0 || p.peer >= c->w->n)) code = BAD_ARGUMENT;
	if (!code && group && (group->comm != c || group->stream != stream)) code = BAD_USAGE; /* a group of one, here */
	if (!code && c->aborted) code = BAD_USAGE;
	if (!code) {
		if (p.op > 4) p.scale = c->scales[p.op - 5];
		if (!group) {
			group = calloc(1, sizeof *group);
			group->busy = calloc(1, sizeof(u64)), group->stream = stream, group->comm = c;
		}
		struct part *kept = malloc(sizeof *kept);
		*kept = p, kept->unit = group;
		if (group->last) group->last->next = kept; else group->parts = kept;
		group->last = kept;
	}
	pthread_mutex_unlock(&mu);
	return code || depth ? code : flush();
}

#define IN (char *)in
#define OUT (char *)out
int ncclAllReduce(void *in, void *out, size_t n, int t, int op, struct comm *c, void *s) { return add(c, s, (struct part){ALLREDUCE, n, t, op, 0, 0, 0, IN, OUT}); }
int ncclReduce(void *in, void *out, size_t n, int t, int op, int root, struct comm *c, void *s) { return add(c, s, (struct part){REDUCE, n, t, op, root, 0, 0, IN, OUT}); }
int ncclBroadcast(void *in, void *out, size_t n, int t, int root, struct comm *c, void *s) { return add(c, s, (struct part){BROADCAST, n, t, 0, root, 0, 0, IN, OUT}); }
int ncclAllGather(void *in, void *out, size_t n, int t, struct comm *c, void *s) { return add(c, s, (struct part){ALLGATHER, n, t, 0, 0, 0, 0, IN, OUT}); }
int ncclReduceScatter(void *in, void *out, size_t n, int t, int op, struct comm *c, void *s) { return add(c, s, (struct part){REDUCESCATTER, n, t, op, 0, 0, 0, IN, OUT}); }
int ncclSend(void *in, size_t n, int t, int peer, struct comm *c, void *s) { return add(c, s, (struct part){SEND, n, t, 0, peer, 0, 0, IN, 0}); }
int ncclRecv(void *out, size_t n, int t, int peer, struct comm *c, void *s) { return add(c, s, (struct part){RECV, n, t, 0, peer, 0, 0, 0, OUT}); }

int ncclRedOpCreatePreMulSum(int *op, void *scalar, int type, int where, struct comm *c) {
	if (where != 1) return BAD_ARGUMENT;
	pthread_mutex_lock(&mu);
	int code = look(c, 0);
	if (!code) {
		int i = c->scales_used++ % 16;
		c->scales[i] = load(scalar, type, 0), *op = 5 + i;
	}
	pthread_mutex_unlock(&mu);
	return code;
}
int ncclRedOpDestroy(int op, struct comm *c) {
	pthread_mutex_lock(&mu);
	int code = look(c, 0);
	pthread_mutex_unlock(&mu);
	return code || op > 4 ? code : BAD_ARGUMENT;
}

/* ---- communicators ---- */

static struct world *world_of(const char *key, int n) {
	for (struct world *w = worlds; w; w = w->next)
		if (!strcmp(w->key, key)) return w->n == n ? w : 0;
	struct world *w = calloc(1, sizeof *w);
	snprintf(w->key, sizeof w->key, "%s", key);
	w->n = n, w->next = worlds;
	return worlds = w;
}

static int configured(struct config *cfg, int *blocking) {
	if (cfg->magic != 0xcafebeef || cfg->size != 80 || cfg->version != 22809) return BAD_ARGUMENT;
	if (cfg->min != UNDEFINED && cfg->min > cfg->max) return BAD_ARGUMENT;
	*blocking = cfg->blocking == UNDEFINED || cfg->blocking;
	return OK;
}

/* join makes rank one of w, and waits for the others if it blocks. mu is held. */
static int join(struct comm **out, struct world *w, int rank, int blocking) {
	struct comm *c = calloc(1, sizeof *c);
	c->magic = ALIVE, c->w = w, c->rank = rank, c->device = current(), c->blocking = blocking;
	if (!contexts[c->device]) cu.retain(&contexts[c->device], c->device);
	w->of[rank] = *out = c, w->joined++;
	pthread_cond_broadcast(&moved);
	if (!blocking) return c->state = IN_PROGRESS;
	while (w->joined < w->n && !c->aborted) pthread_cond_wait(&moved, &mu);
	return c->aborted ? SYSTEM_ERROR : OK;
}

int ncclCommInitRankScalable(struct comm **out, int n, int rank, int ids, id_t128 *id, struct config *cfg) {
	int blocking, code = configured(cfg, &blocking);
	if (code) return code;
	if (current() < 0) return CUDA_ERROR;
	pthread_mutex_lock(&mu);
	struct world *w = ids == 1 && rank >= 0 && rank < n && n <= RANKS ? world_of(id->b, n) : 0;
	code = w && !w->of[rank] ? join(out, w, rank, blocking) : BAD_ARGUMENT;
	pthread_mutex_unlock(&mu);
	return code;
}
int ncclCommInitRankConfig(struct comm **out, int n, id_t128 id, int rank, struct config *cfg) { return ncclCommInitRankScalable(out, n, rank, 1, &id, cfg); }

int ncclGetUniqueId(id_t128 *id) {
	memset(id, 0, sizeof *id);
	pthread_mutex_lock(&mu);
	snprintf(id->b, sizeof id->b, "id %d", ++serial);
	pthread_mutex_unlock(&mu);
	return OK;
}

/* ---- what splits, windows and finalize do in the background ---- */

struct deed { int (*fn)(struct deed *); struct comm *c; void *out; u64 value; int blocking; };
enum { LINGER = 2000 }; /* microseconds, in which a caller that does not wait is found out */

static void *deed_behind(void *arg) {
	struct deed *d = arg;
	usleep(LINGER);
	pthread_mutex_lock(&mu);
	int code = d->c->aborted ? SYSTEM_ERROR : d->fn(d);
	d->c->state = code, d->c->threads--;
	pthread_cond_broadcast(&moved);
	pthread_mutex_unlock(&mu);
	free(d);
	return 0;
}

/* begin does d, or has a thread do it and returns Success where the communicator does
 * not block. mu is held. */
static int begin(struct deed d) {
	if (d.c->blocking) return d.fn(&d);
	struct deed *kept = malloc(sizeof d);
	*kept = d;
	pthread_t t;
	d.c->state = IN_PROGRESS, d.c->threads++;
	pthread_create(&t, 0, deed_behind, kept);
	pthread_detach(t);
	return OK;
}

/* split waits until all ranks of the parent have come, and makes this rank's child.
 * mu is held. */
static int split(struct deed *s) {
	struct comm *c = s->c;
	struct world *w = c->w;
	int round = w->round[c->rank];
	for (;;) {
		int all = 1;
		for (int r = 0; r < w->n; r++) all = all && w->round[r] >= round;
		if (all) break;
		if (c->aborted) return SYSTEM_ERROR;
		pthread_cond_wait(&moved, &mu);
	}
	int *colors = w->color[round % ROUNDS], *order = w->order[round % ROUNDS], color = colors[c->rank], n = 0, rank = 0;
	if (color < 0) return OK;
	for (int r = 0; r < w->n; r++) {
		if (colors[r] != color) continue;
		n++;
		rank += order[r] < order[c->rank] || (order[r] == order[c->rank] && r < c->rank);
	}
	char key[32];
	snprintf(key, sizeof key, "%.12s/%d/%d", w->key, round, color);
	struct comm *child = calloc(1, sizeof *child);
	child->magic = ALIVE, child->w = world_of(key, n), child->rank = rank, child->device = c->device, child->blocking = s->blocking;
	child->w->of[rank] = child, child->w->joined++;
	*(struct comm **)s->out = child;
	return OK;
}

int ncclCommSplit(struct comm *c, int color, int key, struct comm **out, struct config *cfg) {
	int blocking, code = configured(cfg, &blocking);
	if (code) return code;
	pthread_mutex_lock(&mu);
	*out = 0;
	code = look(c, 0);
	if (!code && current() != c->device) code = BAD_USAGE;
	if (!code) {
		for (struct unit *u = c->units; u; u = u->next)
			if (__atomic_load_n(u->busy, __ATOMIC_ACQUIRE)) code = BAD_USAGE; /* something is under way */
	}
	if (!code) {
		int round = ++c->w->round[c->rank] % ROUNDS;
		c->w->color[round][c->rank] = color, c->w->order[round][c->rank] = key;
		pthread_cond_broadcast(&moved);
		code = begin((struct deed){split, c, out, 0, blocking});
	}
	pthread_mutex_unlock(&mu);
	return code;
}

int ncclCommGetAsyncError(struct comm *c, int *state) {
	pthread_mutex_lock(&mu);
	int code = look(c, 1);
	if (!code && c->state == IN_PROGRESS && !c->threads && c->w->joined == c->w->n) c->state = OK;
	if (!code) *state = c->state;
	pthread_mutex_unlock(&mu);
	return code;
}
int ncclCommCount(struct comm *c, int *n) { pthread_mutex_lock(&mu); int code = look(c, 0); *n = c->w->n; pthread_mutex_unlock(&mu); return code; }
int ncclCommUserRank(struct comm *c, int *n) { pthread_mutex_lock(&mu); int code = look(c, 0); *n = c->rank; pthread_mutex_unlock(&mu); return code; }
int ncclCommCuDevice(struct comm *c, int *n) { pthread_mutex_lock(&mu); int code = look(c, 0); *n = c->device; pthread_mutex_unlock(&mu); return code; }

static int nothing(struct deed *d) { (void)d; return OK; }
int ncclCommFinalize(struct comm *c) {
	pthread_mutex_lock(&mu);
	int code = look(c, 0);
	if (!code) code = begin((struct deed){nothing, c, 0, 0, 0});
	if (!code) code = c->state;
	pthread_mutex_unlock(&mu);
	return code;
}
int ncclCommDestroy(struct comm *c) {
	pthread_mutex_lock(&mu);
	int code = look(c, 0);
	for (struct unit *u = c->units; !code && u; u = u->next)
		if (__atomic_load_n(u->busy, __ATOMIC_ACQUIRE)) die("a communicator was destroyed with work under way");
	if (!code) c->magic = FREED;
	pthread_mutex_unlock(&mu);
	return code;
}
int ncclCommAbort(struct comm *c) {
	pthread_mutex_lock(&mu);
	int code = look(c, 1);
	c->aborted = 1;
	pthread_cond_broadcast(&moved);
	while (c->threads) pthread_cond_wait(&moved, &mu);
	c->magic = FREED;
	pthread_mutex_unlock(&mu);
	return code;
}

/* ---- the rest ---- */

int ncclGetVersion(int *v) { *v = 22809; return OK; }
const char *ncclGetErrorString(int code) { return code == OK ? "no error" : code == CUDA_ERROR ? "unhandled cuda error" : code == BAD_USAGE ? "invalid usage" : "another error"; }
const char *ncclGetLastError(struct comm *c) { (void)c; return last_error; }
int ncclMemAlloc(u64 *p, size_t n) { return current() < 0 || cu.alloc(p, n) ? CUDA_ERROR : OK; }
int ncclMemFree(u64 p) { return current() < 0 || cu.free(p) ? CUDA_ERROR : OK; }
static int registered(struct comm *c, u64 addr, u64 *handle) {
	pthread_mutex_lock(&mu);
	int code = look(c, 0);
	*handle = addr;
	pthread_mutex_unlock(&mu);
	return code || addr ? code : BAD_ARGUMENT;
}
int ncclCommRegister(struct comm *c, u64 addr, size_t n, u64 *handle) { return n ? registered(c, addr, handle) : BAD_ARGUMENT; }
int ncclCommDeregister(struct comm *c, u64 handle) { return registered(c, handle, &handle); }
static int open_window(struct deed *d) {
	for (int mine = ++d->c->windows, all = 0; !all;) {
		pthread_cond_broadcast(&moved);
		all = 1;
		for (int r = 0; r < d->c->w->n; r++) all = all && d->c->w->of[r] && d->c->w->of[r]->windows >= mine;
		if (d->c->aborted) return SYSTEM_ERROR;
		if (!all) pthread_cond_wait(&moved, &mu);
	}
	*(u64 *)d->out = d->value;
	return OK;
}
int ncclCommWindowRegister(struct comm *c, u64 addr, size_t n, u64 *window, int flags) {
	pthread_mutex_lock(&mu);
	int code = look(c, 0);
	if (!code) code = addr && n && flags == 1 ? begin((struct deed){open_window, c, window, addr, 0}) : BAD_ARGUMENT;
	pthread_mutex_unlock(&mu);
	return code;
}
int ncclCommWindowDeregister(struct comm *c, u64 window) { return registered(c, window, &window); }
