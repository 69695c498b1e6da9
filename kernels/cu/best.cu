// The k best entries of rows of a product.
#include "best.cuh"

XC_KERNEL __launch_bounds__(256, 2) xc_sparse_best_128(XcProduct p, XcBest best) { xc_product_tile<4, 2>(p, best); }
XC_KERNEL __launch_bounds__(128, 3) xc_sparse_best_32(XcProduct p, XcBest best) { xc_product_tile<1, 4>(p, best); }
XC_KERNEL __launch_bounds__(64) xc_sparse_best_8(XcProduct p, XcBest best) { xc_product_stream<8>(p, best); }
XC_KERNEL __launch_bounds__(64) xc_sparse_best_1(XcProduct p, XcBest best) { xc_product_stream<1>(p, best); }

// Leaves the k best keys of each row, one block a row.
XC_KERNEL __launch_bounds__(256) xc_sparse_narrow(XcBest best, u32 k, u32* lost)
{
    xc_narrow(
        best, k, lost, [](u64 key, u64 kth) { return key <= kth; }, [](u64 kth) { return kth + 1; });
}

// Copies the keys of each row, of `room`, to out + begin[row]. One block a row.
XC_KERNEL __launch_bounds__(256) xc_sparse_gather(const u64* kept, u64 room, const u64* begin, u64* out)
{
    const u64 from = begin[blockIdx.x], n = begin[blockIdx.x + 1] - from;
    for (u64 i = threadIdx.x; i < n; i += blockDim.x) out[from + i] = kept[blockIdx.x * room + i];
}

XC_KERNEL xc_layout_best(u32* out, u32 room)
{
    xc_write_layout(out, room, sizeof(XcBest), XC_AT(XcBest, bars), XC_AT(XcBest, kept), XC_AT(XcBest, n_kept),
        XC_AT(XcBest, filter), XC_AT(XcBest, room), XC_AT(XcBest, label0));
}
