// The k smallest of distinct keys, by counting their digits.
#pragma once
#include "xc.cuh"

struct XcDigits {
    u32 count[256];
    u64 prefix;
    u32 left;
};

// A number that exactly k of n keys do not exceed, of 1 <= k <= n; `key_at(i)` are the keys. Digits of 8 bits are
// counted from the highest down. For the whole block, which meets before and after.
template <class Keys>
XC_INLINE u64 xc_limit(const Keys& key_at, u32 n, u32 k, XcDigits& digits)
{
    // Keys whose bits above `shift` are below `prefix` are in; `left` more are among those where they are equal.
    u64 prefix = 0;
    u32 left = k;
    int shift = 64;
    __syncthreads();
    while (left < n && shift > 0) {
        shift -= 8;
        for (u32 i = threadIdx.x; i < 256; i += blockDim.x) digits.count[i] = 0;
        __syncthreads();
        for (u32 i = threadIdx.x; i < n; i += blockDim.x) {
            const u64 key = key_at(i);
            if (shift == 56 || key >> (shift + 8) == prefix) atomicAdd(&digits.count[(u32)(key >> shift) & 255], 1u);
        }
        __syncthreads();
        if (threadIdx.x < 32) {
            // A lane has 8 digits; the one whose sum reaches `left` finds the digit.
            const u32* const own = digits.count + 8 * threadIdx.x;
            u32 sum = 0;
            for (u32 i = 0; i < 8; ++i) sum += own[i];
            u32 before = sum;
            for (u32 apart = 1; apart < 32; apart *= 2) {
                const u32 other = __shfl_up_sync(XC_ALL_LANES, before, apart);
                if (threadIdx.x >= apart) before += other;
            }
            before -= sum;
            if (before < left && left <= before + sum) {
                u32 i = 0;
                while (before + own[i] < left) before += own[i++];
                digits.prefix = prefix << 8 | (8 * threadIdx.x + i);
                digits.left = left - before;
            }
        }
        __syncthreads();
        prefix = digits.prefix;
        left = digits.left;
        const bool all_are_in = digits.count[(u32)prefix & 255] == left;
        __syncthreads();
        if (all_are_in) break;
    }
    return shift == 64 ? ~0ull : prefix << shift | ((1ull << shift) - 1);
}
