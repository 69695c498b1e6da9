// The dense product of xc_dense, entries written.
#include "product.cuh"

XC_KERNEL __launch_bounds__(256, 2) xc_sparse_product_128(XcProduct p, XcStore store)
{
    xc_product_tile<4, 2>(p, store);
}
XC_KERNEL __launch_bounds__(128, 3) xc_sparse_product_32(XcProduct p, XcStore store)
{
    xc_product_tile<1, 4>(p, store);
}
XC_KERNEL __launch_bounds__(64) xc_sparse_product_8(XcProduct p, XcStore store)
{
    xc_product_stream<8>(p, store);
}
XC_KERNEL __launch_bounds__(64) xc_sparse_product_1(XcProduct p, XcStore store)
{
    xc_product_stream<1>(p, store);
}

// Adds the sums of leaves, which lie `leaf_stride` apart, two and two: the order of xc_buffer::sums. Grid: any.
XC_KERNEL __launch_bounds__(256) xc_sparse_add_leaves(float* sums, u64 leaf_stride, u64 n, u32 leaves)
{
    for (u64 at = blockIdx.x * (u64)blockDim.x + threadIdx.x; at < n; at += gridDim.x * (u64)blockDim.x)
        for (u32 apart = 1; apart < leaves; apart *= 2)
            for (u32 leaf = 0; leaf < leaves; leaf += 2 * apart) {
                float* const low = sums + leaf * leaf_stride + at;
                *low = __fadd_rn(*low, low[apart * leaf_stride]);
            }
}

XC_KERNEL xc_layout_product(u32* out, u32 room)
{
    xc_write_layout(out, room, sizeof(XcProduct), XC_AT(XcProduct, a), XC_AT(XcProduct, a_stride), XC_AT(XcProduct, b),
        XC_AT(XcProduct, b_stride), XC_AT(XcProduct, start), XC_AT(XcProduct, first), XC_AT(XcProduct, m),
        XC_AT(XcProduct, n), XC_AT(XcProduct, k), XC_AT(XcProduct, leaves), sizeof(XcStore), XC_AT(XcStore, c),
        XC_AT(XcStore, stride), XC_AT(XcStore, leaf_stride));
}
