// Rates of a card, from which bench/gpu/model.py predicts times.
#include "xc.cuh"

// Reads and writes 16 n bytes each.
XC_KERNEL __launch_bounds__(256) xc_rate_copy(const uint4* from, uint4* to, u64 n)
{
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (u64)gridDim.x * blockDim.x) to[i] = from[i];
}

// A place costs two instructions, so that memory is what is timed.
XC_INLINE u32 xc_next(u32& state, u32 n)
{
    state = state * 1664525u + 1013904223u;
    return __umulhi(state, n);
}

// Groups of `lanes` lanes (a power of two up to 32) read rows of 16 * lanes bytes at random places of a table, eight at
// a time; n_reads rows in all, a multiple of what a warp reads at a time.
XC_KERNEL __launch_bounds__(256) xc_rate_gather(const uint4* table, u32 n_rows, u32 lanes, u32 n_reads, u32* out)
{
    const u32 lane = threadIdx.x & 31, warp = (blockIdx.x * blockDim.x + threadIdx.x) >> 5;
    const u32 n_warps = gridDim.x * blockDim.x >> 5, at_once = 32 / lanes, within = lane % lanes;
    u32 sum = 0, state = (warp * at_once + lane / lanes) * 2654435761u + 12345u;
    for (u32 read = warp * at_once * 8; read < n_reads; read += n_warps * at_once * 8) {
        uint4 v[8];
#pragma unroll
        for (u32 j = 0; j < 8; ++j) v[j] = __ldg(table + (u64)xc_next(state, n_rows) * lanes + within);
#pragma unroll
        for (u32 j = 0; j < 8; ++j) sum += v[j].x ^ v[j].y ^ v[j].z ^ v[j].w;
    }
    // Without a use of the sum there would be no loads.
    if (sum == 0x12345678u) out[0] = sum;
}

// 8 n fused multiply-adds a thread, in eight chains.
XC_KERNEL __launch_bounds__(256) xc_rate_fma(float factor, u32 n, float* out)
{
    float v[8];
#pragma unroll
    for (u32 j = 0; j < 8; ++j) v[j] = (float)(threadIdx.x + j);
    for (u32 i = 0; i < n; ++i)
#pragma unroll
        for (u32 j = 0; j < 8; ++j) v[j] = fmaf(v[j], factor, factor);
    float sum = 0.f;
#pragma unroll
    for (u32 j = 0; j < 8; ++j) sum += v[j];
    if (sum == 0.1234567f) out[0] = sum;
}

// One thread follows a chain of n loads from where the call before ended: what that one read is not read again.
XC_KERNEL __launch_bounds__(32) xc_rate_chain(const u32* next, u32 n, u32* place)
{
    u32 at = place[0];
    for (u32 i = 0; i < n; ++i) at = next[at];
    place[0] = at;
}

XC_KERNEL __launch_bounds__(32) xc_rate_empty() {}
