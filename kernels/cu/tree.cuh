// Beam search of a label tree: a block a query walks down all levels of the model as it lies on disk (records, headers,
// values, directory, bias and part_ptr of xc_sparse::chunked::LevelArrays, and the slot map of the tree).
//
// A warp multiplies the query with one chunk at a time. Products are not fused and go by ascending feature, as on the CPU,
// so margins have its bits; with the hinge and without a post-processor, scores and ranking have them too.
#pragma once
#include "smallest.cuh"

#define XC_WARPS 8
#define XC_WORDS 4 // mask words of a chunk, at most: 128 children
#define XC_AHEAD 4 // rows whose values are under way at a time
#define XC_KEYS 1024 // new keys of a round, at most

struct XcTreeLevel {
    const u64* records;
    const u32* headers;
    const void* values;
    const u64* directory;
    const float* bias;
    const u32* part_ptr;
};

struct XcTree {
    const XcTreeLevel* levels;
    const u32* slot_map;
    const u32* labels;
    u32 n_levels, n_features;
};

// What is searched for.
struct XcTreeSearch {
    u32 beam, top_k;
    u32 keys_room;  // the power of two from max(beam, top_k) + XC_KEYS on
    u32 a_round;    // chunks that are multiplied before their children are ranked: of at most XC_KEYS children
    u32 longest;    // features of the longest query
    u32 post;       // 0: hinge, 1: sigmoid, 2: none
    u32 power;      // of the hinge
    u32 all_leaves; // 1: all leaves below the last beam are the answer, in any order
    u64 out_stride; // entries of `out` a query
};

// Queries: rows of a CSR matrix, and where their answers go.
struct XcTreeQueries {
    const u64* row_ptr;
    const u32* features;
    const float* values;
    u64* out;
    u32* n_out;
};

// A feature of a query with its image under the slot map.
struct XcFeature {
    u32 feature, slot;
    float value;
};

// A node whose children are scored, and the number of chunks up to its last.
struct XcParent {
    u32 node, end;
    float score;
};

// A row of a chunk whose feature the query has, with the query's value; of each mask word, where its first value stands.
struct XcRow {
    float x;
    u32 mask[XC_WORDS], at[XC_WORDS];
};

// Values of a level, by their type.
struct XcF32 {
    typedef float Stored;
    XC_INLINE float widen(float v) { return v; }
};
struct XcF16 {
    typedef u16 Stored;
    XC_INLINE float widen(u16 bits)
    {
        float v;
        asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(bits));
        return v;
    }
};
struct XcBf16 {
    typedef u16 Stored;
    XC_INLINE float widen(u16 bits) { return xc_widen(bits); }
};

// -ln(1 + exp(-z)) within half a unit in the last place: all of it in f64, exp and the logarithm by series.
XC_INLINE float xc_log_sigmoid(float z)
{
    const double a = fabsf(z) < 700.f ? -(double)fabsf(z) : -700.0, round = 6755399441055744.0;
    const double n = a * 1.4426950408889634 + round;
    const long long exponent = __double_as_longlong(n) - __double_as_longlong(round);
    double r = fma(round - n, 6.93147180369123816490e-01, a);
    r = fma(round - n, 1.90821492927058770002e-10, r);
    double e = 1.0 / 39916800.0;
    e = fma(e, r, 1.0 / 3628800.0);
    e = fma(e, r, 1.0 / 362880.0);
    e = fma(e, r, 1.0 / 40320.0);
    e = fma(e, r, 1.0 / 5040.0);
    e = fma(e, r, 1.0 / 720.0);
    e = fma(e, r, 1.0 / 120.0);
    e = fma(e, r, 1.0 / 24.0);
    e = fma(e, r, 1.0 / 6.0);
    e = fma(e, r, 0.5);
    e = fma(e, r, 1.0);
    e = fma(e, r, 1.0);
    e = e * __longlong_as_double((exponent + 1023) << 52);
    const double s = e / (2.0 + e), q = s * s;
    double log = 1.0 / 21.0;
    for (int i = 19; i > 0; i -= 2) log = fma(log, q, 1.0 / i);
    const double below = z < 0.f ? (double)z : 0.0;
    return (float)(below - 2.0 * s * log);
}

// PostProcessor::accumulate.
template <bool MAY_BE_SIGMOID>
XC_INLINE float xc_accumulate(const XcTreeSearch& search, float parent, float margin)
{
    if (search.post == 2) return margin;
    if (MAY_BE_SIGMOID && search.post == 1) return parent + xc_log_sigmoid(margin);
    float gap = 1.f - margin;
    gap = gap > 0.f ? gap : 0.f;
    float power = gap;
    for (u32 i = 1; i < search.power; ++i) power = power * gap;
    return parent - power;
}

// Adds the products of XC_AHEAD rows to the children of mask word `word`. All values are under way before the first is used.
template <class W>
XC_INLINE void xc_add_rows(const typename W::Stored* values, const XcRow* rows, u32 word, u32 lane, float& sum)
{
    float value[XC_AHEAD];
    bool has[XC_AHEAD];
#pragma unroll
    for (u32 j = 0; j < XC_AHEAD; ++j) {
        const u32 mask = rows[j].mask[word];
        has[j] = mask >> lane & 1;
        value[j] = has[j] ? W::widen(__ldg(values + rows[j].at[word] + __popc(mask & ((1u << lane) - 1)))) : 0.f;
    }
#pragma unroll
    for (u32 j = 0; j < XC_AHEAD; ++j)
        if (has[j]) sum = sum + rows[j].x * value[j];
}

// Margins of a chunk's children without bias: lane c has those of children c, c + 32, c + 64, c + 96 in `sums`. `rows` is
// room for 32 rows of the warp's own.
template <class W, bool IN_SHARED>
XC_INLINE void xc_margins(const XcTree& tree, const XcTreeLevel& level, u32 chunk, u32 words, const XcTreeQueries& queries,
    const XcFeature* query, u64 begin, u32 nnz, XcRow* rows, u32 lane, float (&sums)[XC_WORDS])
{
    const u64* const record = level.records + (u64)chunk * 4;
    const u32 stride = 2 + words;
    const u64 header = __ldg(record);
    const u32* const headers = level.headers + header;
    const u32 n_header = (u32)(__ldg(record + 4) - header);
    const u64* const directory = level.directory + __ldg(record + 2);
    const typename W::Stored* const values = (const typename W::Stored*)level.values + __ldg(record + 1);
    const u32 n_slots = (u32)(__ldg(record + 3) >> 32);
    const bool is_direct = n_slots == tree.n_features;
#pragma unroll
    for (u32 word = 0; word < XC_WORDS; ++word) sums[word] = 0.f;
    if (n_header == 0) return;
    for (u32 base = 0; base < nnz; base += 32) {
        // Each lane looks for the row of a feature.
        const u32 i = base + lane;
        bool is_found = false;
        u32 row = 0; // its place in the headers
        if (i < nnz) {
            const u32 feature = IN_SHARED ? query[i].feature : queries.features[begin + i];
            const u32 scaled = is_direct ? 0 : IN_SHARED ? query[i].slot : __ldg(tree.slot_map + feature);
            const u32 slot = is_direct ? feature : __umulhi(scaled, n_slots);
            const u64 entry = __ldg(directory + slot / 32);
            if ((u32)entry >> (slot % 32) & 1) {
                row = (u32)(entry >> 32) + __popc((u32)entry & ((1u << slot % 32) - 1));
                // Rows that found their slots taken stand behind those that took them.
                row *= stride;
                while (row < n_header && __ldg(headers + row) < feature) row += stride;
                is_found = row < n_header && __ldg(headers + row) == feature;
            }
        }
        const u32 found = __ballot_sync(XC_ALL_LANES, is_found), n = __popc(found);
        if (is_found) {
            XcRow& to = rows[__popc(found & ((1u << lane) - 1))];
            const u32* const header = headers + row;
            to.x = IN_SHARED ? query[i].value : queries.values[begin + i];
            u32 at = __ldg(header + 1);
#pragma unroll 2
            for (u32 word = 0; word < words; ++word) {
                const u32 mask = __ldg(header + 2 + word);
                to.mask[word] = mask;
                to.at[word] = at;
                at += __popc(mask);
            }
        }
        if (lane >= n && lane < n + XC_AHEAD - 1) {
            // Rows of no child fill the last XC_AHEAD.
            rows[lane].x = 0.f;
#pragma unroll
            for (u32 word = 0; word < XC_WORDS; ++word) rows[lane].mask[word] = rows[lane].at[word] = 0;
        }
        __syncwarp();
        for (u32 first = 0; first < n; first += XC_AHEAD)
#pragma unroll
            for (u32 word = 0; word < XC_WORDS; ++word)
                if (word < words) xc_add_rows<W>(values, rows + first, word, lane, sums[word]);
        __syncwarp(); // the room is used again
    }
}

// Dynamic shared memory of a block; the spare room of xc_keep_smallest is that of the rows.
struct XcTreeShared {
    XcRow rows[XC_WARPS * 32];
    u64 keys[1]; // keys_room: the best so far, and new ones behind them; then `beam` parents, and the query's features
};

static_assert(sizeof(XcRow) * XC_WARPS * 32 >= XC_SPARE * sizeof(u64), "rows are the spare room");

// Mask words of a row for a chunk of `width` children.
XC_INLINE u32 xc_words(u32 width) { return width <= 32 ? 1 : (width + 31) / 32; }

// The parent that chunk number `pair` of all parents' chunks is of, by a warp.
XC_INLINE u32 xc_parent_of(const XcParent* parents, u32 n_parents, u32 pair, u32 lane)
{
    for (u32 base = 0;; base += 32) {
        const u32 above = __ballot_sync(XC_ALL_LANES, base + lane < n_parents && parents[base + lane].end > pair);
        if (above != 0) return base + __ffs(above) - 1;
    }
}

// The number of chunks up to each parent, by a warp.
XC_INLINE void xc_count_chunks(const u32* part_ptr, XcParent* parents, u32 n_parents, u32 lane)
{
    u32 before = 0;
    for (u32 base = 0; base < n_parents; base += 32) {
        u32 n = 0;
        if (base + lane < n_parents) {
            const u32 node = parents[base + lane].node;
            n = __ldg(part_ptr + node + 1) - __ldg(part_ptr + node);
        }
        for (u32 step = 1; step < 32; step *= 2) {
            const u32 of = __shfl_up_sync(XC_ALL_LANES, n, step);
            if (lane >= step) n += of;
        }
        if (base + lane < n_parents) parents[base + lane].end = before + n;
        before += __shfl_sync(XC_ALL_LANES, n, 31);
    }
}

template <class W, bool IN_SHARED, bool MAY_BE_SIGMOID>
XC_INLINE void xc_tree_search(const XcTree& tree, const XcTreeSearch& search, const XcTreeQueries& queries)
{
    XC_DYNAMIC_SHARED(XcTreeShared, shared);
    __shared__ u32 n_keys, n_kept, n_parents, next_pair;
    __shared__ XcSmallest smallest;
    u64* const keys = shared->keys;
    XcParent* const parents = (XcParent*)(keys + search.keys_room);
    XcFeature* const query = (XcFeature*)(parents + (search.beam > 0 ? search.beam : 1));
    const u32 lane = threadIdx.x & 31;
    const u64 begin = queries.row_ptr[blockIdx.x];
    const u32 nnz = (u32)(queries.row_ptr[blockIdx.x + 1] - begin);
    if (IN_SHARED)
        for (u32 i = threadIdx.x; i < nnz; i += blockDim.x) {
            const u32 feature = queries.features[begin + i];
            query[i].feature = feature;
            query[i].slot = __ldg(tree.slot_map + feature);
            query[i].value = queries.values[begin + i];
        }
    if (threadIdx.x == 0) {
        parents[0].node = 0;
        parents[0].score = 0.f;
        n_parents = 1;
    }
    __syncthreads();

    for (u32 l = 0; l < tree.n_levels; ++l) {
        const XcTreeLevel& level = tree.levels[l];
        const bool is_last = l + 1 == tree.n_levels, keeps_all = is_last && search.all_leaves != 0;
        const u32 wanted = keeps_all ? 0 : is_last ? search.top_k : search.beam;
        if (threadIdx.x < 32) xc_count_chunks(level.part_ptr, parents, n_parents, lane);
        if (threadIdx.x == 0) n_keys = n_kept = 0;
        __syncthreads();
        const u32 n_pairs = n_parents == 0 || (wanted == 0 && !keeps_all) ? 0 : parents[n_parents - 1].end;
        for (u32 first = 0; first < n_pairs; first += search.a_round) {
            if (threadIdx.x == 0) next_pair = first;
            __syncthreads();
            for (;;) {
                u32 pair = 0;
                if (lane == 0) pair = atomicAdd(&next_pair, 1u);
                pair = __shfl_sync(XC_ALL_LANES, pair, 0);
                if (pair >= n_pairs || pair - first >= search.a_round) break;
                const XcParent& parent = parents[xc_parent_of(parents, n_parents, pair, lane)];
                // No child ranks above its parent: when enough better ones are kept, none of this chunk is.
                if (search.post != 2 && !keeps_all && n_kept == wanted && xc_rank_key(parent.score, 0) > keys[wanted - 1])
                    continue;
                const u32 chunk = __ldg(level.part_ptr + parent.node + 1) - (parent.end - pair);
                const u64* const record = level.records + (u64)chunk * 4;
                const u32 words = xc_words((u32)__ldg(record + 7) - (u32)__ldg(record + 3));
                XcRow* const rows = shared->rows + (threadIdx.x & ~31u);
                float sums[XC_WORDS];
                xc_margins<W, IN_SHARED>(tree, level, chunk, words, queries, query, begin, nnz, rows, lane, sums);
                const u32 child = (u32)__ldg(record + 3), width = (u32)__ldg(record + 7) - child;
                u32 place = 0;
                if (keeps_all) {
                    if (lane == 0) place = atomicAdd(&n_keys, width);
                    place = __shfl_sync(XC_ALL_LANES, place, 0);
                }
#pragma unroll
                for (u32 word = 0; word < XC_WORDS; ++word) {
                    const u32 c = word * 32 + lane;
                    if (c >= width) continue;
                    const float margin = sums[word] + __ldg(level.bias + child + c);
                    const float ranking = xc_accumulate<MAY_BE_SIGMOID>(search, parent.score, margin);
                    const u64 key = xc_rank_key(ranking, is_last ? __ldg(tree.labels + child + c) : child + c);
                    if (keeps_all) queries.out[blockIdx.x * search.out_stride + place + c] = key;
                    // With enough kept, only what beats the worst of them is worth a place.
                    else if (n_kept < wanted || key < keys[wanted - 1]) keys[n_kept + atomicAdd(&n_keys, 1u)] = key;
                }
            }
            __syncthreads();
            if (!keeps_all) {
                const u32 n = n_kept + n_keys;
                if (n_keys != 0) xc_keep_smallest(keys, n, wanted, (u64*)shared->rows, smallest);
                __syncthreads();
                if (threadIdx.x == 0) {
                    n_kept = n < wanted ? n : wanted;
                    n_keys = 0;
                }
            }
        }
        __syncthreads();
        if (is_last) {
            if (!keeps_all)
                for (u32 i = threadIdx.x; i < n_kept; i += blockDim.x)
                    queries.out[blockIdx.x * search.out_stride + i] = keys[i];
            if (threadIdx.x == 0) queries.n_out[blockIdx.x] = keeps_all ? n_keys : n_kept;
        } else {
            for (u32 i = threadIdx.x; i < n_kept; i += blockDim.x) {
                parents[i].node = (u32)keys[i];
                parents[i].score = xc_key_score(keys[i]);
            }
            if (threadIdx.x == 0) n_parents = n_kept;
        }
        __syncthreads();
    }
}

// xc_tree_beam: queries whose features stand in shared memory, and post-processors other than the sigmoid; with 64 registers
// a processor holds four blocks. xc_tree_long: the others. Dynamic shared memory: XC_WARPS * 32 * sizeof(XcRow) + keys_room
// * 8 + max(beam, 1) * sizeof(XcParent) bytes and, for xc_tree_beam, longest * sizeof(XcFeature).
#define XC_TREE(stored, W)                                                                                             \
    XC_KERNEL __launch_bounds__(256) xc_tree_beam_##stored(XcTree tree, XcTreeSearch search, XcTreeQueries queries)    \
    {                                                                                                                  \
        xc_tree_search<W, true, false>(tree, search, queries);                                                         \
    }                                                                                                                  \
    XC_KERNEL __launch_bounds__(256, 2) xc_tree_long_##stored(XcTree tree, XcTreeSearch search, XcTreeQueries queries) \
    {                                                                                                                  \
        xc_tree_search<W, false, true>(tree, search, queries);                                                         \
    }
