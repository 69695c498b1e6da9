// The exact scan of xc_ann: rows whose f32 scores may be among the best (xc_ann::frame), and their sums in f64.
#include "best.cuh"

// By how much a score of a query may be off, from the length of the row.
struct XcBound {
    float base, by_length, by_square;
    float longest;                  // of longer rows nothing is known
};

enum XcForm { XC_DISTANCE, XC_PRODUCT, XC_SHARE };

// The keys kept are of what scores are at least.
struct XcOpen {
    XcBest best;
    const float* sides;             // of each row what belongs to it beside its product
    const float* lengths;
    const XcBound* bounds;          // of each query
    u32 form;
    u32 has_directions;             // rows without a length are no answers

    __device__ __forceinline__ float error(const XcBound& bound, float length) const
    {
        const float of = bound.base + length * (bound.by_length + length * bound.by_square);
        return length > bound.longest ? __uint_as_float(0x7f800000) : of;
    }
    __device__ __forceinline__ float score(float product, float side) const
    {
        return form == XC_DISTANCE ? 2.f * product - side : form == XC_SHARE ? product * side : product;
    }
    // A score that is no number says nothing.
    __device__ __forceinline__ bool may(float score, float off, float length, float bar) const
    {
        return !(score + off < bar) && (!has_directions || length > 0.f);
    }
    __device__ __forceinline__ void offer(u32 i, u32 row, float product, const XcBound& bound, float bar) const
    {
        const float length = lengths[row], of = score(product, sides[row]), off = error(bound, length);
        if (!may(of, off, length, bar) || !best.passes(row)) return;
        const float low = of - off, high = of + off, none = __uint_as_float(0xff800000);
        const bool is_known = fabsf(low) <= 3.402823466e38f && fabsf(high) <= 3.402823466e38f;
        best.keep(i, xc_rank_key(is_known ? low : none, row));
    }
    __device__ __forceinline__ void one(const XcProduct& p, u32 i, u32 j, float sum) const
    {
        offer(i, best.label0 + j, sum, bounds[i], xc_key_score(best.bars[i]));
    }
    __device__ __forceinline__ void take(const XcProduct& p, const XcEntries& sum, u32 i0, u32 j0) const
    {
        const u32 row0 = best.label0 + j0;
        float side[8], length[8];
#pragma unroll
        for (u32 j = 0; j < 8; ++j)
            if (j0 + 8 * j < p.n) {
                side[j] = sides[row0 + 8 * j];
                length[j] = lengths[row0 + 8 * j];
            }
#pragma unroll
        for (u32 i = 0; i < 8; ++i) {
            if (i0 + 4 * i >= p.m) break;
            const XcBound bound = bounds[i0 + 4 * i];
            // Of no bar the score is NaN, which no score is below.
            const float bar = xc_key_score(best.bars[i0 + 4 * i]);
            u32 open = 0;
#pragma unroll
            for (u32 j = 0; j < 8; ++j)
                if (j0 + 8 * j < p.n &&
                    may(score(sum.at[i][j], side[j]), error(bound, length[j]), length[j], bar))
                    open |= 1u << j;
            for (; open != 0; open &= open - 1) {
                const u32 j = __ffs(open) - 1;
                offer(i0 + 4 * i, row0 + 8 * j, sum.pick(i, j), bound, bar);
            }
        }
    }
};

XC_KERNEL __launch_bounds__(256, 2) xc_ann_open_128(XcProduct p, XcOpen open) { xc_product_tile<4, 2>(p, open); }
XC_KERNEL __launch_bounds__(128, 3) xc_ann_open_32(XcProduct p, XcOpen open) { xc_product_tile<1, 4>(p, open); }
XC_KERNEL __launch_bounds__(64) xc_ann_open_8(XcProduct p, XcOpen open) { xc_product_stream<8>(p, open); }
XC_KERNEL __launch_bounds__(64) xc_ann_open_1(XcProduct p, XcOpen open) { xc_product_stream<1>(p, open); }

// Two steps of keys worse, or better: at least the next f32, since -0 and 0 are two steps here.
#define XC_TWO_STEPS (2ull << 32)

// Leaves the rows that may be among the k best of each query, one block a query. Rounding moves no score past the next
// f32: true sums of f32 that are in an order are so once rounded.
XC_KERNEL __launch_bounds__(256) xc_ann_narrow(XcOpen open, u32 k, u32* lost)
{
    const XcBound bound = open.bounds[blockIdx.x];
    const u64 unknown = xc_rank_key(__uint_as_float(0xff800000), 0);
    const auto bar_of = [&](u64 kth) { return kth >= unknown ? ~0ull : kth + XC_TWO_STEPS; };
    const auto stays = [&](u64 key, u64 kth) {
        if (key >= unknown) return true;
        const double low = xc_key_score(key - XC_TWO_STEPS), off = open.error(bound, open.lengths[(u32)key]);
        return !(low + 2.0 * off < (double)xc_key_score(bar_of(kth)));
    };
    xc_narrow(open.best, k, lost, stays, bar_of);
}

// For each key of a query the sums of xc_dense::{wide_dot_and_square, wide_squared_distance} over a row: that
// of the key's label, or what `first` has for it. Value j goes to chain j % 16, chains are halved until one is left.
// Half a warp a key, 16 keys a block; grid: (queries, any).
XC_KERNEL __launch_bounds__(256) xc_ann_sums(
    const float* queries, const float* rows, u64 row_stride, const u32* first, u32 width, u32 is_distance,
    const u64* keys, const u64* begin, double* out)
{
    const u32 lane = threadIdx.x % 16, mask = 0xffffu << (threadIdx.x & 16);
    const float* const query = queries + (u64)blockIdx.x * width;
    const u64 end = begin[blockIdx.x + 1];
    for (u64 at = begin[blockIdx.x] + blockIdx.y * 16 + threadIdx.x / 16; at < end; at += gridDim.y * 16) {
        const u32 label = (u32)keys[at];
        const float* const row = rows + (first ? first[label] : label) * row_stride;
        double product = 0.0, square = 0.0;
        for (u32 j = lane; j < width; j += 16) {
            const double a = query[j], b = row[j];
            product += is_distance ? (a - b) * (a - b) : a * b;
            square += b * b;
        }
#pragma unroll
        for (u32 half = 8; half > 0; half /= 2) {
            product += __shfl_down_sync(mask, product, half, 16);
            square += __shfl_down_sync(mask, square, half, 16);
        }
        if (lane == 0) {
            out[2 * at] = product;
            out[2 * at + 1] = square;
        }
    }
}

XC_KERNEL xc_layout_ann(u32* out, u32 room)
{
    xc_write_layout(out, room, sizeof(XcOpen), XC_AT(XcOpen, best), XC_AT(XcOpen, sides), XC_AT(XcOpen, lengths),
        XC_AT(XcOpen, bounds), XC_AT(XcOpen, form), XC_AT(XcOpen, has_directions), sizeof(XcBound),
        XC_AT(XcBound, base), XC_AT(XcBound, by_length), XC_AT(XcBound, by_square), XC_AT(XcBound, longest));
}
