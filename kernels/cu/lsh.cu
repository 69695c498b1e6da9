// Keys of SimHash (xc_lsh::simhash): signs of a product as bits, and bits side by side as keys.
#include "product.cuh"

// Bit j % 64 of word j / 64 of a row says whether entry j is above 0; what is no number is not.
struct XcSigns {
    u64* words;
    u64 stride;                     // words of a row: of all columns

    __device__ __forceinline__ void take(const XcProduct& p, const XcEntries& sum, u32 i0, u32 j0) const
    {
        const u32 of_lane = j0 % 8;
#pragma unroll
        for (u32 i = 0; i < 8; ++i) {
            u64 bits = 0;
#pragma unroll
            for (u32 j = 0; j < 8; ++j)
                if (j0 + 8 * j < p.n && sum.at[i][j] > 0.f) bits |= 1ull << (of_lane + 8 * j);
            // The eight lanes of a row.
            for (u32 apart = 2; apart <= 8; apart *= 2) bits |= __shfl_xor_sync(XC_ALL_LANES, bits, apart);
            if (of_lane == 0 && i0 + 4 * i < p.m && j0 < p.n) words[(i0 + 4 * i) * stride + j0 / 64] = bits;
        }
    }
};

XC_KERNEL __launch_bounds__(256, 2) xc_lsh_signs_128(XcProduct p, XcSigns signs) { xc_product_tile<4, 2>(p, signs); }
XC_KERNEL __launch_bounds__(128, 3) xc_lsh_signs_32(XcProduct p, XcSigns signs) { xc_product_tile<1, 4>(p, signs); }

// From the bits of rows, bit k * n_tables + t of a row for code k of table t, to the codes of each table side by side,
// the first in the highest bit: as keys of 32 bits, or where there are `wide` as 64 bits. Grid: any.
XC_KERNEL __launch_bounds__(256) xc_lsh_join(
    const u64* words, u64 stride, u64 n_rows, u32 n_tables, u32 n_codes, u32* keys, u64* wide)
{
    const u64 n = n_rows * n_tables;
    for (u64 at = blockIdx.x * (u64)blockDim.x + threadIdx.x; at < n; at += gridDim.x * (u64)blockDim.x) {
        const u64* const row = words + at / n_tables * stride;
        u64 codes = 0;
        u32 bit = at % n_tables;
        for (u32 k = 0; k < n_codes; ++k, bit += n_tables) codes = codes << 1 | (row[bit / 64] >> (bit % 64) & 1);
        if (wide) wide[at] = codes;
        else keys[at] = (u32)codes;
    }
}

XC_KERNEL xc_layout_lsh(u32* out, u32 room)
{
    xc_write_layout(out, room, sizeof(XcSigns), XC_AT(XcSigns, words), XC_AT(XcSigns, stride));
}
