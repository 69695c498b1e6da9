// Cells of xc_ann: codes of rows in blocks, compared with codes of queries (xc_ann::product, xc_ann::cells).
#include "best.cuh"

#define XC_BLOCK 16                 // rows of a block

// What makes sums of bytes of a query keys.
struct XcCode {
    float factor, norm;
    int shift;
};

struct XcCells {
    const u8* bytes;                // a block: the first four bytes of each row side by side, then the next four
    const float* sides;             // a block: norms of its rows, then their scales
    const u32* labels;              // of each place of a block; null: places themselves
    const u32* begins;              // the first block of each cell
    const signed char* queries;     // `stride` bytes each
    const XcCode* codes;
    const u32* visits;              // of each query `n_visits` cells
    u32 stride, n_visits;
    u32 n_labels;                   // labels from here on are none
};

// The keys of rows of cells `from` and on of each query, offered as scores: keys with the other sign. Grid: (queries,
// cells). Dynamic shared memory: stride. Half a warp has a block, a lane a row.
XC_KERNEL __launch_bounds__(256) xc_ann_cells(XcCells cells, u32 from, XcBest best)
{
    XC_DYNAMIC_SHARED(int, query);
    const u32 lane = threadIdx.x % XC_BLOCK, words = cells.stride / 4;
    const int* const bytes_of_query = (const int*)(cells.queries + (u64)blockIdx.x * cells.stride);
    for (u32 i = threadIdx.x; i < words; i += blockDim.x) query[i] = bytes_of_query[i];
    __syncthreads();
    const u32 cell = cells.visits[(u64)blockIdx.x * cells.n_visits + from + blockIdx.y];
    const XcCode code = cells.codes[blockIdx.x];
    const u64 bar = best.bars[blockIdx.x];
    const float bar_score = xc_key_score(bar);
    for (u64 block = cells.begins[cell] + threadIdx.x / XC_BLOCK; block < cells.begins[cell + 1];
         block += blockDim.x / XC_BLOCK) {
        const u32* const bytes = (const u32*)(cells.bytes + block * XC_BLOCK * cells.stride) + lane;
        int sum = 0;
        for (u32 i = 0; i < words; ++i)
            asm("dp4a.u32.s32 %0, %1, %2, %0;" : "+r"(sum) : "r"(bytes[XC_BLOCK * i]), "r"(query[i]));
        const u64 place = block * XC_BLOCK + lane;
        const u32 label = cells.labels ? cells.labels[place] : (u32)place;
        const float* const sides = cells.sides + block * 2 * XC_BLOCK + lane;
        const float product = code.factor * sides[XC_BLOCK] * (float)(sum - code.shift);
        const float key = code.norm + sides[0] - product;
        if (label < cells.n_labels) best.offer(blockIdx.x, label, -key, bar, bar_score);
    }
}

XC_KERNEL xc_layout_ann_cells(u32* out, u32 room)
{
    xc_write_layout(out, room, sizeof(XcCells), XC_AT(XcCells, bytes), XC_AT(XcCells, sides), XC_AT(XcCells, labels),
        XC_AT(XcCells, begins), XC_AT(XcCells, queries), XC_AT(XcCells, codes), XC_AT(XcCells, visits),
        XC_AT(XcCells, stride), XC_AT(XcCells, n_visits), XC_AT(XcCells, n_labels), sizeof(XcCode),
        XC_AT(XcCode, factor), XC_AT(XcCode, norm), XC_AT(XcCode, shift));
}
