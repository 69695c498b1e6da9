// The k smallest of each row of keys, ascending. Keys of a row are distinct: a label is in each (xc_rank_key).
#include "xc.cuh"

// One block a row; row r has n[r] keys from keys + r * stride on. Dynamic shared memory: room keys, room the power of
// two from k on. Writes min(k, n[r]) keys to out + r * k, and their number to n_out[r].
//
// Digits of 8 bits are counted from the highest down until the k smallest are known; these are then sorted.
XC_KERNEL __launch_bounds__(256) xc_select_k(
    const u64* keys, const u32* n, u64 stride, u32 k, u32 room, u64* out, u32* n_out)
{
    XC_DYNAMIC_SHARED(u64, best);
    __shared__ u32 count[256];
    __shared__ u64 next_prefix;
    __shared__ u32 next_left, n_best;
    const u64* const row = keys + blockIdx.x * stride;
    const u32 length = n[blockIdx.x], wanted = k < length ? k : length;

    // Keys whose bits above `shift` are below `prefix` are in; `left` more are among those where they are equal.
    u64 prefix = 0;
    u32 left = wanted;
    int shift = 64;
    while (wanted > 0 && wanted < length && shift > 0) {
        shift -= 8;
        for (u32 i = threadIdx.x; i < 256; i += blockDim.x) count[i] = 0;
        __syncthreads();
        for (u32 i = threadIdx.x; i < length; i += blockDim.x) {
            const u64 key = row[i];
            if (shift == 56 || key >> (shift + 8) == prefix) atomicAdd(&count[(u32)(key >> shift) & 255], 1u);
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            u32 digit = 0, before = 0;
            while (before + count[digit] < left) before += count[digit++];
            next_prefix = prefix << 8 | digit;
            next_left = left - before;
        }
        __syncthreads();
        prefix = next_prefix;
        left = next_left;
        const bool all_are_in = count[(u32)prefix & 255] == left;
        __syncthreads();
        if (all_are_in) break;
    }

    if (threadIdx.x == 0) n_best = 0;
    __syncthreads();
    for (u32 i = threadIdx.x; i < length; i += blockDim.x) {
        const u64 key = row[i];
        if (wanted == length || (wanted > 0 && key >> shift <= prefix)) best[atomicAdd(&n_best, 1u)] = key;
    }
    for (u32 i = wanted + threadIdx.x; i < room; i += blockDim.x) best[i] = ~0ull;
    __syncthreads();
    xc_sort(best, room);
    for (u32 i = threadIdx.x; i < wanted; i += blockDim.x) out[(u64)blockIdx.x * k + i] = best[i];
    if (threadIdx.x == 0) n_out[blockIdx.x] = wanted;
}
