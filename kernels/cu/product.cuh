// Products of matrices whose rows are contiguous: C[i][j] = start[j] + sum over v of A[i][v] * B[j][v]. An entry is one
// chain of fused multiply-adds with v ascending, as in xc_dense::product: the CPU's bytes.
//
// What becomes of the entries is up to an epilogue, so that a scan never writes its scores.
#pragma once
#include "xc.cuh"

struct XcProduct {
    const float* a; u64 a_stride;   // m rows of k values, floats from one to the next
    const float* b; u64 b_stride;   // the same of B, of which rows first .. first + n are columns of C
    const float* start;             // of each row of B; null: 0
    u64 first;
    u32 m, n, k;
    u32 leaves;                     // chains an entry, a power of two (xc_buffer::sums::Blocks); blockIdx.y is the leaf
};

// Tiles: a warp has 32 rows of C and 64 columns, a thread 8 x 8 of them: every 4th row and every 8th column.
#define XC_STEP 16                  // values of a stage
#define XC_LINE 20                  // floats from one row of a stage to the next: 8 rows lie in different banks
#define XC_WARP_ROWS 32
#define XC_WARP_COLUMNS 64

XC_INLINE void xc_copy16(float* to, const float* from)
{
    const u32 at = (u32)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
}
XC_INLINE void xc_copy4(float* to, const float* from)
{
    const u32 at = (u32)__cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(at), "l"(from) : "memory");
}
XC_INLINE void xc_copies_begun() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// All but the newest `open` groups of copies of this thread have arrived.
template <int open>
XC_INLINE void xc_copies_arrived() { asm volatile("cp.async.wait_group %0;" ::"n"(open) : "memory"); }

// Values v .. v + 4 of a row, of those before `end`; `whole`: 16 bytes of a row are aligned.
XC_INLINE void xc_copy_four(float* to, const float* from, u32 v, u32 end, bool whole)
{
    if (whole && v + 4 <= end) xc_copy16(to, from);
    else
#pragma unroll 1
        for (u32 i = 0; i < 4 && v + i < end; ++i) xc_copy4(to + i, from + i);
}

XC_INLINE bool xc_is_whole(const XcProduct& p)
{
    return (((u64)p.a | (u64)p.b) & 15) == 0 && ((p.a_stride | p.b_stride) & 3) == 0;
}

// Values of a leaf along k.
XC_INLINE void xc_leaf(const XcProduct& p, u32 leaf, u32* begin, u32* end)
{
    const u64 units = ((u64)p.k + 31) / 32;
    const u64 from = units * leaf / p.leaves * 32, to = units * (leaf + 1) / p.leaves * 32;
    *begin = (u32)(from < p.k ? from : p.k);
    *end = (u32)(to < p.k ? to : p.k);
}

// What a tile reads of a matrix: some of its rows, of which those beyond the last stand for the last.
struct XcLines {
    const float* from;              // value 0 of the first row
    u32 last, stride;

    __device__ __forceinline__ XcLines(const float* matrix, u64 stride, u64 first, u32 row, u32 n)
        : from(matrix + (first + row) * stride), last(n - 1 - row), stride((u32)stride)
    {
    }
    // Copies values v .. v + XC_STEP of `rows` rows to a stage: a thread has 16 bytes of every (threads / 4)th row.
    template <u32 rows, u32 threads>
    __device__ __forceinline__ void stage(float* to, u32 v, u32 end, bool whole) const
    {
        const u32 quarter = threadIdx.x % 4 * 4;
#pragma unroll
        for (u32 i = 0; i < rows * 4 / threads; ++i) {
            const u32 row = threadIdx.x / 4 + i * (threads / 4);
            const u32 at = (row < last ? row : last) * stride + quarter;
            xc_copy_four(to + row * XC_LINE + quarter, from + v + at, v + quarter, end, whole);
        }
    }
};

// The 8 x 8 entries of a thread: rows i0 + 4 i and columns j0 + 8 j.
struct XcEntries {
    float at[8][8];

    // Entry j of row i, of which i is known to the compiler.
    __device__ __forceinline__ float pick(u32 i, u32 j) const
    {
        float entry = at[i][0];
#pragma unroll
        for (u32 other = 1; other < 8; ++other) entry = j == other ? at[i][other] : entry;
        return entry;
    }
};

// One tile of (32 down) x (64 across) entries, by 32 * down * across threads. Blocks go down the rows of C first: those
// that run together share rows of B. Grid: (tiles, leaves). Dynamic shared memory: two stages of
// (32 * down + 64 * across) * XC_LINE floats.
template <u32 down, u32 across, class Epilogue>
XC_INLINE void xc_product_tile(const XcProduct& p, const Epilogue& epilogue)
{
    const u32 threads = 32 * down * across, tall = XC_WARP_ROWS * down, wide = XC_WARP_COLUMNS * across;
    XC_DYNAMIC_SHARED(float, stages);
    const u32 tiles_down = (p.m + tall - 1) / tall;
    const u32 row0 = blockIdx.x % tiles_down * tall, column0 = blockIdx.x / tiles_down * wide;
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    // Neighbouring lanes share columns, every second one a row: what they share is read once.
    const u32 i0 = warp % down * XC_WARP_ROWS + (lane & 1) + (lane >> 4) * 2;
    const u32 j0 = warp / down * XC_WARP_COLUMNS + (lane >> 1 & 7);
    const bool whole = xc_is_whole(p);
    u32 begin, end;
    xc_leaf(p, blockIdx.y, &begin, &end);

    XcEntries sum;
#pragma unroll
    for (u32 j = 0; j < 8; ++j) {
        const u32 column = column0 + j0 + 8 * j;
        const float start = p.start && column < p.n ? p.start[p.first + column] : 0.f;
#pragma unroll
        for (u32 i = 0; i < 8; ++i) sum.at[i][j] = start;
    }
    const XcLines rows(p.a, p.a_stride, 0, row0, p.m);
    const XcLines columns(p.b, p.b_stride, p.first, column0, p.n);
    const u32 size = (tall + wide) * XC_LINE;
    rows.stage<tall, threads>(stages, begin, end, whole);
    columns.stage<wide, threads>(stages + tall * XC_LINE, begin, end, whole);
    xc_copies_begun();
    u32 which = 0;
    for (u32 v = begin; v < end; v += XC_STEP, which ^= 1) {
        xc_copies_arrived<0>();
        __syncthreads();                                    // the other stage has been used by all
        float* const here = stages + which * size;
        float* const next = stages + (which ^ 1) * size;
        rows.stage<tall, threads>(next, v + XC_STEP, end, whole);
        columns.stage<wide, threads>(next + tall * XC_LINE, v + XC_STEP, end, whole);
        xc_copies_begun();
        const float* const a = here + i0 * XC_LINE;
        const float* const b = here + (tall + j0) * XC_LINE;
        if (v + XC_STEP <= end) {
#pragma unroll 1
            for (u32 four = 0; four < XC_STEP; four += 4) {
                float4 x[8];
#pragma unroll
                for (u32 i = 0; i < 8; ++i) x[i] = *(const float4*)(a + 4 * i * XC_LINE + four);
#pragma unroll
                for (u32 j = 0; j < 8; ++j) {
                    const float4 y = *(const float4*)(b + 8 * j * XC_LINE + four);
#pragma unroll
                    for (u32 i = 0; i < 8; ++i) sum.at[i][j] = __fmaf_rn(x[i].x, y.x, sum.at[i][j]);
#pragma unroll
                    for (u32 i = 0; i < 8; ++i) sum.at[i][j] = __fmaf_rn(x[i].y, y.y, sum.at[i][j]);
#pragma unroll
                    for (u32 i = 0; i < 8; ++i) sum.at[i][j] = __fmaf_rn(x[i].z, y.z, sum.at[i][j]);
#pragma unroll
                    for (u32 i = 0; i < 8; ++i) sum.at[i][j] = __fmaf_rn(x[i].w, y.w, sum.at[i][j]);
                }
            }
        } else {
            // Zeros in place of the values that are missing could change the sign of a 0.
#pragma unroll 1
            for (u32 one = 0; one < end - v; ++one) {
                float x[8];
#pragma unroll
                for (u32 i = 0; i < 8; ++i) x[i] = a[4 * i * XC_LINE + one];
#pragma unroll
                for (u32 j = 0; j < 8; ++j) {
                    const float y = b[8 * j * XC_LINE + one];
#pragma unroll
                    for (u32 i = 0; i < 8; ++i) sum.at[i][j] = __fmaf_rn(x[i], y, sum.at[i][j]);
                }
            }
        }
    }
    xc_copies_arrived<0>();
    epilogue.take(p, sum, row0 + i0, column0 + j0);
}

// Writes C, leaf after leaf.
struct XcStore {
    float* c;
    u64 stride;                     // floats from one row of C to the next
    u64 leaf_stride;                // from one leaf's sums to the next one's

    __device__ __forceinline__ void one(const XcProduct& p, u32 i, u32 j, float sum) const
    {
        c[blockIdx.y * leaf_stride + i * stride + j] = sum;
    }
    __device__ __forceinline__ void take(const XcProduct& p, const XcEntries& sum, u32 i0, u32 j0) const
    {
#pragma unroll
        for (u32 i = 0; i < 8; ++i)
#pragma unroll
            for (u32 j = 0; j < 8; ++j)
                if (i0 + 4 * i < p.m && j0 + 8 * j < p.n) one(p, i0 + 4 * i, j0 + 8 * j, sum.at[i][j]);
    }
};

// The product for at most `few` rows of A, whose floor is to read B once. Each warp goes over groups of 32 rows of B on
// its own, a lane a row; what it reads next is on its way through XC_STAGES stages, also from one group to the next.
// Grid: any number of blocks of two warps. Shared memory: 36 KB.
#define XC_STAGES 4
#define XC_LONG_STEP 32             // values of a stage: 128 bytes of a row
#define XC_LONG_LINE 36             // floats from one row of a stage to the next
#define XC_STREAMS 2                // warps of a block

template <u32 few, class Epilogue>
XC_INLINE void xc_product_stream(const XcProduct& p, const Epilogue& epilogue)
{
    __shared__ __align__(16) float rings[XC_STREAMS][XC_STAGES][32 * XC_LONG_LINE];
    const u32 lane = threadIdx.x % 32, n_warps = gridDim.x * XC_STREAMS;
    float (*const ring)[32 * XC_LONG_LINE] = rings[threadIdx.x / 32];
    const bool whole = xc_is_whole(p);
    const u32 steps = p.k > XC_LONG_STEP ? (p.k - 1) / XC_LONG_STEP + 1 : 1;
    const u32 quarter = lane % 8 * 4;

    // What is copied next, and what is used next: a group of rows, the step along k, and the stage.
    const u32 first = (blockIdx.x * XC_STREAMS + threadIdx.x / 32) * 32, by = n_warps * 32;
    u64 ahead = first;
    u32 ahead_step = 0, ahead_stage = 0;
    const auto copy = [&]() {
        if (ahead < p.n) {
            float* const to = ring[ahead_stage] + lane / 8 * XC_LONG_LINE + quarter;
            const u32 v = ahead_step * XC_LONG_STEP + quarter;
#pragma unroll
            for (u32 i = 0; i < 8; ++i) {
                u64 row = ahead + lane / 8 + 4 * i;
                if (row >= p.n) row = p.n - 1;
                xc_copy_four(to + 4 * i * XC_LONG_LINE, p.b + (p.first + row) * p.b_stride + v, v, p.k, whole);
            }
            if (++ahead_step == steps) {
                ahead_step = 0;
                ahead += by;
            }
            ahead_stage = (ahead_stage + 1) % XC_STAGES;
        }
        xc_copies_begun();
    };
#pragma unroll 1
    for (u32 i = 0; i + 1 < XC_STAGES; ++i) copy();

    const float* a[few];
#pragma unroll
    for (u32 i = 0; i < few; ++i) a[i] = p.a + (i < p.m ? i : p.m - 1) * p.a_stride;
    u32 stage = 0;
    for (u64 group = first; group < p.n; group += by) {
        const u64 row = group + lane;
        const float start = p.start && row < p.n ? p.start[p.first + row] : 0.f;
        float sum[few];
#pragma unroll
        for (u32 i = 0; i < few; ++i) sum[i] = start;
        for (u32 step = 0; step < steps; ++step) {
            xc_copies_arrived<XC_STAGES - 2>();
            __syncwarp();                                   // the stage before has been used by all lanes
            copy();
            const float* const here = ring[stage] + lane * XC_LONG_LINE;
            const u32 v = step * XC_LONG_STEP;
            stage = (stage + 1) % XC_STAGES;
            if (whole && v + XC_LONG_STEP <= p.k) {
#pragma unroll(few == 1 ? XC_LONG_STEP / 4 : 1)
                for (u32 four = 0; four < XC_LONG_STEP; four += 4) {
                    const float4 y = *(const float4*)(here + four);
#pragma unroll
                    for (u32 i = 0; i < few; ++i) {
                        const float4 x = *(const float4*)(a[i] + v + four);
                        sum[i] = __fmaf_rn(x.x, y.x, sum[i]);
                        sum[i] = __fmaf_rn(x.y, y.y, sum[i]);
                        sum[i] = __fmaf_rn(x.z, y.z, sum[i]);
                        sum[i] = __fmaf_rn(x.w, y.w, sum[i]);
                    }
                }
            } else {
#pragma unroll 1
                for (u32 one = 0; one < XC_LONG_STEP && v + one < p.k; ++one)
#pragma unroll
                    for (u32 i = 0; i < few; ++i) sum[i] = __fmaf_rn(a[i][v + one], here[one], sum[i]);
            }
        }
#pragma unroll
        for (u32 i = 0; i < few; ++i)
            if (i < p.m && row < p.n) epilogue.one(p, i, (u32)row, sum[i]);
    }
    xc_copies_arrived<0>();
}
