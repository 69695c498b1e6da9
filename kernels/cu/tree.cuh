// Beam search of a label tree: a block a query walks down all levels of the model as it lies on disk (records, headers,
// values, directory, bias and part_ptr of xc_sparse::chunked::LevelArrays, and the slot map of the tree).
//
// A warp multiplies the query with one chunk at a time. Products are not fused and go by ascending feature, as on the CPU,
// so margins have its bits; with the hinge and without a post-processor, scores and ranking have them too.
#pragma once
#include "smallest.cuh"

#define XC_WORDS 4 // mask words of a chunk, at most: 128 children

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
    u32 keys_room;  // a power of two, with room for max(beam, top_k) keys and those of a round
    u32 a_round;    // chunks that are multiplied before their children are ranked
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
template <u32 WORDS>
struct __align__(16) XcRow {
    float x;
    u32 mask[WORDS], at[WORDS];
    // Features that a lane looks for at a time, and rows whose values are under way at a time, as many as 64 registers hold.
    enum : u32 { lookups = WORDS == 1 ? 2 : 1, ahead = WORDS == 1 ? 8 : 4 };
};

// Bytes of a warp's rows.
#define XC_ROWS_BYTES 1536 // xc_tree::cuda has it, too
static_assert(sizeof(XcRow<1>) * XcRow<1>::lookups * 32 <= XC_ROWS_BYTES, "rows of one word");
static_assert(sizeof(XcRow<XC_WORDS>) * XcRow<XC_WORDS>::lookups * 32 <= XC_ROWS_BYTES, "rows of some words");

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

// Adds the products of some rows to the children of mask word `word`. All values are under way before the first is used.
template <class W, u32 WORDS>
XC_INLINE void xc_add_rows(const typename W::Stored* values, const XcRow<WORDS>* rows, u32 word, u32 lane, float& sum)
{
    constexpr u32 ahead = XcRow<WORDS>::ahead;
    float x[ahead], value[ahead];
    bool has[ahead];
#pragma unroll
    for (u32 j = 0; j < ahead; ++j) {
        const u32 mask = rows[j].mask[word];
        x[j] = rows[j].x;
        has[j] = mask >> lane & 1;
        value[j] = has[j] ? W::widen(__ldg(values + rows[j].at[word] + __popc(mask & ((1u << lane) - 1)))) : 0.f;
    }
#pragma unroll
    for (u32 j = 0; j < ahead; ++j)
        if (has[j]) sum = sum + x[j] * value[j];
}

// Margins of a chunk's children without bias: lane c has those of children c, c + 32, c + 64, c + 96 in `sums`. `rows` is
// room of the warp's own.
template <class W, bool IN_SHARED, u32 WORDS>
XC_INLINE void xc_margins(const XcTree& tree, const XcTreeLevel& level, u32 chunk, u32 words, const XcTreeQueries& queries,
    const XcFeature* query, u64 begin, u32 nnz, XcRow<WORDS>* rows, u32 lane, float (&sums)[XC_WORDS])
{
    constexpr u32 lookups = XcRow<WORDS>::lookups, ahead = XcRow<WORDS>::ahead;
    const u64* const record = level.records + (u64)chunk * 4;
    const u32 stride = 2 + words;
    const u64 header = __ldg(record);
    const u32* const headers = level.headers + header;
    const u32 n_header = (u32)(__ldg(record + 4) - header);
    const u64* const directory = level.directory + __ldg(record + 2);
    const typename W::Stored* const values = (const typename W::Stored*)level.values + __ldg(record + 1);
    const u32 n_slots = (u32)(__ldg(record + 3) >> 32);
    const bool is_direct = n_slots == tree.n_features;
    if (n_header == 0) return;
    for (u32 base = 0; base < nnz; base += 32 * lookups) {
        // Each lane looks for the rows of some features, for all of them before it uses the first.
        u64 entry[lookups];
        u32 feature[lookups], bit[lookups], row[lookups], found[lookups]; // rows by their places in the headers
#pragma unroll
        for (u32 j = 0; j < lookups; ++j) {
            const u32 i = base + 32 * j + lane;
            entry[j] = feature[j] = bit[j] = 0;
            if (i < nnz) {
                feature[j] = IN_SHARED ? query[i].feature : queries.features[begin + i];
                const u32 scaled = is_direct ? 0 : IN_SHARED ? query[i].slot : __ldg(tree.slot_map + feature[j]);
                const u32 slot = is_direct ? feature[j] : __umulhi(scaled, n_slots);
                bit[j] = slot % 32;
                entry[j] = __ldg(directory + slot / 32);
            }
        }
#pragma unroll
        for (u32 j = 0; j < lookups; ++j) {
            const u32 taken = (u32)entry[j];
            row[j] = taken >> bit[j] & 1 ? ((u32)(entry[j] >> 32) + __popc(taken & ((1u << bit[j]) - 1))) * stride : n_header;
            // No feature has the largest number.
            found[j] = row[j] < n_header ? __ldg(headers + row[j]) : ~0u;
        }
#pragma unroll
        for (u32 j = 0; j < lookups; ++j)
            // Rows that found their slots taken stand behind those that took them.
            while (found[j] < feature[j]) {
                row[j] += stride;
                found[j] = row[j] < n_header ? __ldg(headers + row[j]) : ~0u;
            }
        u32 n = 0;
#pragma unroll
        for (u32 j = 0; j < lookups; ++j) {
            const bool is_found = found[j] == feature[j];
            const u32 those = __ballot_sync(XC_ALL_LANES, is_found);
            if (is_found) {
                const u32 i = base + 32 * j + lane;
                XcRow<WORDS>& to = rows[n + __popc(those & ((1u << lane) - 1))];
                const u32* const header = headers + row[j];
                to.x = IN_SHARED ? query[i].value : queries.values[begin + i];
                u32 at = __ldg(header + 1);
#pragma unroll
                for (u32 word = 0; word < WORDS; ++word)
                    if (word < words) {
                        const u32 mask = __ldg(header + 2 + word);
                        to.mask[word] = mask;
                        to.at[word] = at;
                        at += __popc(mask);
                    }
            }
            n += __popc(those);
        }
        if (n + lane < (n + ahead - 1) / ahead * ahead) {
            // Rows of no child fill the last of those whose values are under way.
            XcRow<WORDS>& to = rows[n + lane];
            to.x = 0.f;
#pragma unroll 1 // registers are short
            for (u32 word = 0; word < WORDS; ++word) to.mask[word] = to.at[word] = 0;
        }
        __syncwarp();
        for (u32 first = 0; first < n; first += ahead)
#pragma unroll
            for (u32 word = 0; word < WORDS; ++word)
                if (word < words) xc_add_rows<W, WORDS>(values, rows + first, word, lane, sums[word]);
        __syncwarp(); // the room is used again
    }
}

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
    // Rows of each warp, which are the spare room of xc_keep_smallest; the best keys so far, and new ones behind them;
    // parents; the query's features.
    XC_DYNAMIC_SHARED(unsigned char, shared);
    __shared__ u32 n_keys, n_kept, n_parents, next_pair;
    __shared__ XcSmallest smallest;
    u64* const keys = (u64*)(shared + blockDim.x / 32 * XC_ROWS_BYTES);
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
        // The root, as the best of a level above.
        keys[0] = xc_rank_key(0.f, 0);
        n_kept = 1;
    }
    for (u32 l = 0; l < tree.n_levels; ++l) {
        const XcTreeLevel& level = tree.levels[l];
        const bool is_last = l + 1 == tree.n_levels, keeps_all = is_last && search.all_leaves != 0;
        const u32 wanted = keeps_all ? 0 : is_last ? search.top_k : search.beam;
        if (threadIdx.x < 32) {
            // What thread 0 wrote last is for this warp.
            __syncwarp();
            const u32 n = n_kept;
            for (u32 i = lane; i < n; i += 32) {
                parents[i].node = (u32)keys[i];
                parents[i].score = xc_key_score(keys[i]);
            }
            __syncwarp();
            xc_count_chunks(level.part_ptr, parents, n, lane);
            if (lane == 0) {
                n_parents = n;
                n_keys = n_kept = next_pair = 0;
            }
        }
        __syncthreads();
        const u32 n_pairs = n_parents == 0 || (wanted == 0 && !keeps_all) ? 0 : parents[n_parents - 1].end;
        if (n_pairs == 0) {
            if (threadIdx.x == 0) queries.n_out[blockIdx.x] = 0;
            return;
        }
        for (u32 first = 0; first < n_pairs; first += search.a_round) {
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
                void* const rows = shared + threadIdx.x / 32 * XC_ROWS_BYTES;
                float sums[XC_WORDS] = {};
                if (words == 1)
                    xc_margins<W, IN_SHARED>(tree, level, chunk, 1, queries, query, begin, nnz, (XcRow<1>*)rows, lane, sums);
                else
                    xc_margins<W, IN_SHARED>(
                        tree, level, chunk, words, queries, query, begin, nnz, (XcRow<XC_WORDS>*)rows, lane, sums);
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
                if (n_keys != 0)
                    xc_keep_smallest(keys, n, wanted, (u64*)shared, smallest);
                else
                    __syncthreads();
                if (threadIdx.x == 0) {
                    n_kept = n < wanted ? n : wanted;
                    n_keys = 0;
                }
            }
            if (first + search.a_round < n_pairs) {
                if (threadIdx.x == 0) next_pair = first + search.a_round;
                __syncthreads();
            }
        }
        if (is_last) {
            __syncthreads();
            if (!keeps_all)
                for (u32 i = threadIdx.x; i < n_kept; i += blockDim.x)
                    queries.out[blockIdx.x * search.out_stride + i] = keys[i];
            if (threadIdx.x == 0) queries.n_out[blockIdx.x] = keeps_all ? n_keys : n_kept;
        }
    }
}

// xc_tree_beam: queries whose features stand in shared memory, and post-processors other than the sigmoid, by 3 to 10 warps;
// with 64 registers a processor holds three blocks of ten. xc_tree_long: the others, by 3 to 8. Dynamic shared memory:
// XC_ROWS_BYTES a warp, keys_room * 8 + max(beam, 1) * sizeof(XcParent) bytes and, for xc_tree_beam,
// longest * sizeof(XcFeature).
#define XC_TREE(stored, W)                                                                                             \
    XC_KERNEL __launch_bounds__(320) xc_tree_beam_##stored(XcTree tree, XcTreeSearch search, XcTreeQueries queries)    \
    {                                                                                                                  \
        xc_tree_search<W, true, false>(tree, search, queries);                                                         \
    }                                                                                                                  \
    XC_KERNEL __launch_bounds__(256, 2) xc_tree_long_##stored(XcTree tree, XcTreeSearch search, XcTreeQueries queries) \
    {                                                                                                                  \
        xc_tree_search<W, false, true>(tree, search, queries);                                                         \
    }
