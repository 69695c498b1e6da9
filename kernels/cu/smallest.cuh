// The k smallest of some keys in shared memory, by the whole block.
#pragma once
#include "xc.cuh"

// Keys that are ranked by counting those below each; more are sorted.
#define XC_COUNTED 64
// Keys that `spare` has room for, a power of two; at least as many as a block has threads.
#define XC_SPARE 512
// The smallest keys of 32 lanes bound up to so many wanted keys, those of each thread up to xc_of_threads().
#define XC_OF_LANES 24

// What a block shares while it looks for its smallest keys.
struct XcSmallest {
    u64 bound;
    u32 n_left;
};

XC_INLINE u32 xc_of_threads() { return blockDim.x / 4 * 3; }

// How many of the n keys are below `key`.
XC_INLINE u32 xc_below(const u64* keys, u32 n, u64 key)
{
    u32 below = 0;
#pragma unroll 4
    for (u32 i = 0; i < n; ++i) below += keys[i] < key;
    return below;
}

// A key that at least `wanted` of the n keys do not exceed, in *bound; few more do not exceed it. The keys are divided
// among lanes or threads, and the smallest keys of these are ranked. XC_COUNTED < n, wanted <= xc_of_threads().
XC_INLINE void xc_bound(const u64* keys, u32 n, u32 wanted, u64* spare, u64* bound)
{
    u64 least = ~0ull;
    for (u32 i = threadIdx.x; i < n; i += blockDim.x) least = keys[i] < least ? keys[i] : least;
    spare[threadIdx.x] = least;
    if (wanted > XC_OF_LANES) {
        u32 room = 64;
        while (room < blockDim.x) room *= 2;
        if (blockDim.x + threadIdx.x < room) spare[blockDim.x + threadIdx.x] = ~0ull;
        __syncthreads();
        xc_sort(spare, room);
        if (threadIdx.x == 0) *bound = spare[wanted - 1];
    } else {
        __syncthreads();
        if (threadIdx.x < 32) {
            for (u32 i = threadIdx.x + 32; i < blockDim.x; i += 32) least = spare[i] < least ? spare[i] : least;
            spare[threadIdx.x] = least;
            __syncwarp();
            if (xc_below(spare, 32, least) + 1 == wanted) *bound = least;
        }
    }
    __syncthreads();
}

// Moves the `wanted` smallest of n distinct keys to the front of `keys`, ascending. `keys` has room for the power of two
// from n on, `spare` for XC_SPARE. The caller has a barrier before; there is one at the end.
XC_INLINE void xc_keep_smallest(u64* keys, u32 n, u32 wanted, u64* spare, XcSmallest& shared)
{
    u64* from = keys;
    if (n > XC_COUNTED && n > wanted && wanted <= xc_of_threads()) {
        if (threadIdx.x == 0) shared.n_left = 0;
        xc_bound(keys, n, wanted, spare, &shared.bound);
        const u64 most = shared.bound;
        for (u32 i = threadIdx.x; i < n; i += blockDim.x)
            if (keys[i] <= most) {
                const u32 at = atomicAdd(&shared.n_left, 1u);
                if (at < XC_SPARE) spare[at] = keys[i];
            }
        __syncthreads();
        if (shared.n_left <= XC_SPARE) {
            from = spare;
            n = shared.n_left;
        }
    }
    if (n <= XC_COUNTED) {
        u64 key = 0;
        u32 place = wanted;
        if (threadIdx.x < n) {
            key = from[threadIdx.x];
            place = xc_below(from, n, key);
        }
        if (from == keys) __syncthreads();
        if (place < wanted) keys[place] = key;
    } else {
        u32 room = 2 * XC_COUNTED;
        while (room < n) room *= 2;
        for (u32 i = n + threadIdx.x; i < room; i += blockDim.x) from[i] = ~0ull;
        __syncthreads();
        xc_sort(from, room);
        if (from != keys)
            for (u32 i = threadIdx.x; i < n && i < wanted; i += blockDim.x) keys[i] = from[i];
    }
    __syncthreads();
}
