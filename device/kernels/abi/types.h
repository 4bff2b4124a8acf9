// Fixed-width types. The kernel compiler comes without the standard headers that
// define them, and needs none of them.
#pragma once

typedef unsigned char u8;
typedef signed char i8;
typedef unsigned short u16;
typedef short i16;
typedef unsigned int u32;
typedef int i32;
typedef unsigned long long u64;
typedef long long i64;

static_assert(sizeof(u8) == 1 && sizeof(u16) == 2 && sizeof(u32) == 4 && sizeof(u64) == 8 && sizeof(void *) == 8, "widths");

// OFFSET_OF(type, field) is the offset of a field, a constant. Without headers NVRTC
// has no offsetof; it has what its front end builds offsetof from.
#ifdef __CUDACC_RTC__
#define OFFSET_OF(type, field) __INTADDR__(&((type *)0)->field)
#else
#define OFFSET_OF(type, field) __builtin_offsetof(type, field)
#endif
