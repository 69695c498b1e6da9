// The k best entries of each row of a product, without writing the others. Entries that beat the row's bar are kept as
// keys (xc_rank_key); after each part of the columns the k best of them give the next bar.
#pragma once
#include "product.cuh"
#include "select.cuh"

struct XcBest {
    u64* bars;                      // of each row of A: keys below it are kept
    u64* kept;                      // of each row `room` keys, in no order
    u32* n_kept;                    // how many there were; more than `room` are lost
    const u64* filter;              // bit l % 64 of word l / 64 is label l; null: all pass
    u32 room;
    u32 label0;                     // label of the first column

    __device__ __forceinline__ bool passes(u32 label) const
    {
        return !filter || (filter[label / 64] >> (label % 64) & 1);
    }
    __device__ __forceinline__ void keep(u32 i, u64 key) const
    {
        const u32 at = atomicAdd(&n_kept[i], 1u);
        if (at < room) kept[(u64)i * room + at] = key;
    }
    __device__ __forceinline__ void offer(u32 i, u32 j, float score, u64 bar, float bar_score) const
    {
        if (score < bar_score || score != score) return;
        const u64 key = xc_rank_key(score, label0 + j);
        if (key < bar && passes(label0 + j)) keep(i, key);
    }
    __device__ __forceinline__ void one(const XcProduct& p, u32 i, u32 j, float sum) const
    {
        offer(i, j, sum, bars[i], xc_key_score(bars[i]));
    }
    __device__ __forceinline__ void take(const XcProduct& p, const XcEntries& sum, u32 i0, u32 j0) const
    {
#pragma unroll
        for (u32 i = 0; i < 8; ++i) {
            if (i0 + 4 * i >= p.m) break;
            // Of no bar the score is NaN, which no score is below.
            const u64 bar = bars[i0 + 4 * i];
            const float bar_score = xc_key_score(bar);
            u32 open = 0;
#pragma unroll
            for (u32 j = 0; j < 8; ++j)
                if (j0 + 8 * j < p.n && !(sum.at[i][j] < bar_score)) open |= 1u << j;
            for (; open != 0; open &= open - 1) {
                const u32 j = __ffs(open) - 1;
                offer(i0 + 4 * i, j0 + 8 * j, sum.pick(i, j), bar, bar_score);
            }
        }
    }
};

// Sets the bar of a row by the k best keys kept, and leaves those keys for which `stays(key, kth key)`; says whether
// keys were lost. One block a row. `bar_of`: the bar for a kth key.
template <class Stays, class Bar>
XC_INLINE void xc_narrow(const XcBest& best, u32 k, u32* lost, const Stays& stays, const Bar& bar_of)
{
    __shared__ XcDigits digits;
    __shared__ u64 kth;
    __shared__ u32 n_left;
    const u32 row = blockIdx.x, n = min(best.n_kept[row], best.room);
    u64* const keys = best.kept + (u64)row * best.room;
    if (threadIdx.x == 0) {
        if (best.n_kept[row] > best.room) lost[row] = 1;
        kth = 0;
        n_left = 0;
    }
    if (n < k) {
        __syncthreads();
        if (threadIdx.x == 0) best.n_kept[row] = n;
        return;
    }
    const u64 limit = xc_limit([&](u32 i) { return keys[i]; }, n, k, digits);
    for (u32 i = threadIdx.x; i < n; i += blockDim.x)
        if (keys[i] <= limit) atomicMax(&kth, keys[i]);
    __syncthreads();
    for (u32 from = 0; from < n; from += blockDim.x) {
        const u32 i = from + threadIdx.x;
        const u64 key = i < n ? keys[i] : 0;
        __syncthreads();                                    // all have read before places are filled again
        if (i < n && stays(key, kth)) keys[atomicAdd(&n_left, 1u)] = key;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        best.bars[row] = bar_of(kth);
        best.n_kept[row] = n_left;
    }
}
