// The k smallest of each row of keys, ascending. Keys of a row are distinct: a label is in each (xc_rank_key).
#include "select.cuh"

// One block a row; row r has n[r] keys from keys + r * stride on. Dynamic shared memory: room keys, room the power of
// two from k on. Writes min(k, n[r]) keys to out + r * k, and their number to n_out[r].
XC_KERNEL __launch_bounds__(256) xc_select_k(
    const u64* keys, const u32* n, u64 stride, u32 k, u32 room, u64* out, u32* n_out)
{
    XC_DYNAMIC_SHARED(u64, best);
    __shared__ XcDigits digits;
    __shared__ u32 n_best;
    const u64* const row = keys + blockIdx.x * stride;
    const u32 length = n[blockIdx.x], wanted = k < length ? k : length;
    if (threadIdx.x == 0) n_best = 0;
    if (wanted > 0) {
        const u64 limit = xc_limit([&](u32 i) { return row[i]; }, length, wanted, digits);
        for (u32 i = threadIdx.x; i < length; i += blockDim.x) {
            const u64 key = row[i];
            if (key <= limit) best[atomicAdd(&n_best, 1u)] = key;
        }
    }
    for (u32 i = wanted + threadIdx.x; i < room; i += blockDim.x) best[i] = ~0ull;
    __syncthreads();
    xc_sort(best, room);
    for (u32 i = threadIdx.x; i < wanted; i += blockDim.x) out[(u64)blockIdx.x * k + i] = best[i];
    if (threadIdx.x == 0) n_out[blockIdx.x] = wanted;
}
