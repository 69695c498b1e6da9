// What all kernels share. Compiled with --fmad=false: no product is fused with a sum unless the text says so.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define XC_KERNEL extern "C" __global__ void
#define XC_INLINE static __device__ __forceinline__
#define XC_ALL_LANES 0xffffffffu

// Dynamic shared memory of a kernel as an array of T.
#define XC_DYNAMIC_SHARED(T, name)                               \
    extern __shared__ __align__(16) unsigned char name##_bytes[]; \
    T* const name = reinterpret_cast<T*>(name##_bytes)

// The layout of structs for xc_kernels::layout::check, at most `room` numbers:
// xc_write_layout(out, room, sizeof(S), XC_AT(S, field), ...).
#define XC_AT(S, field) ((u64) & ((const S*)0)->field)
template <class... T>
XC_INLINE void xc_write_layout(u32* out, u32 room, T... numbers)
{
    u32 i = 0;
    ((i < room ? (void)(out[i] = (u32)numbers) : (void)0, ++i), ...);
}

// Keys in the order of xc_sparse::rank::rank_order: the smallest is the best. Equal scores go by label, -0 equals 0,
// NaN is last.
XC_INLINE u64 xc_rank_key(float score, u32 label)
{
    const u32 bits = __float_as_uint(score == 0.f ? 0.f : score);
    const u32 ascending = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    const u32 high = score != score ? 0xffffffffu : ~ascending;
    return (u64)high << 32 | label;
}

// The score of a key; that of NaN is NaN.
XC_INLINE float xc_key_score(u64 key)
{
    const u32 ascending = ~(u32)(key >> 32);
    return __uint_as_float(ascending & 0x80000000u ? ascending & 0x7fffffffu : ~ascending);
}

// bf16 as f32.
XC_INLINE float xc_widen(u16 bits) { return __uint_as_float((u32)bits << 16); }

// Sorts a power of two of keys in shared memory, ascending, by the whole block.
XC_INLINE void xc_sort(u64* keys, u32 n)
{
    for (u32 size = 2; size <= n; size *= 2)
        for (u32 step = size / 2; step > 0; step /= 2) {
            for (u32 t = threadIdx.x; t < n / 2; t += blockDim.x) {
                const u32 i = 2 * t - (t & (step - 1)), j = i + step;
                const u64 a = keys[i], b = keys[j];
                if ((a > b) == ((i & size) == 0)) {
                    keys[i] = b;
                    keys[j] = a;
                }
            }
            __syncthreads();
        }
}
