// MACH: the labels whose statistics beat each query's bar, out of a range of labels, for up to 32 queries together.
//
// Buckets are computed: nothing is read for a label. A screen of a few operations a look-up leaves out labels that
// cannot beat the bar; the others are scored in f32 in the order of the repetitions, with the bits of a scan on the CPU.
//
//   mean      8-bit upper bounds of the scores; their sums are exact integers
//   median    whether a score beats the bar, a bit a query: enough of a label's scores must
//   min       the same: all of them must
#include "xc.cuh"

// Queries of a line of scores; lines stand in the order [repetition][bucket].
#define XC_QUERIES 32
// Most repetitions.
#define XC_REPETITIONS 64

// What a label's scores are combined to.
#define XC_MEAN 0
#define XC_MIN 1
#define XC_MEDIAN 2

// A function of either family.
struct XcMachHash {
    u64 factor, offset;
};

// Labels first .. first + n, and how they fall into buckets. by_prime is floor((2^64 - 1) / prime), by_buckets
// floor((2^32 - 1) / n_buckets); without a prime the family is multiply-shift.
struct XcMachLabels {
    const XcMachHash* hashes;
    u64 by_prime;
    u32 prime, n_buckets, by_buckets, n_repetitions, first, n;
};

// Labels that passed the screen: `room` places a query. A count beyond the room says that labels are missing.
struct XcMachPassed {
    u32* labels;
    u32* n;
    u32 room, pad;
};

XC_INLINE u32 xc_mach_remainder(u64 n, u32 divisor, u64 reciprocal)
{
    const u64 rest = n - __umul64hi(n, reciprocal) * divisor;
    return (u32)(rest >= divisor ? rest - divisor : rest);
}

// ((a x + b) mod p) mod B. Equal steps of x are equal steps modulo p.
struct XcPrime {
    u32 residue;
    XC_INLINE u64 step(const XcMachLabels& s, XcMachHash hash, u32 labels)
    {
        return xc_mach_remainder(hash.factor * labels, s.prime, s.by_prime);
    }
    XC_INLINE XcPrime of(const XcMachLabels& s, XcMachHash hash, u32 label)
    {
        return XcPrime{xc_mach_remainder(hash.factor * label + hash.offset, s.prime, s.by_prime)};
    }
    __device__ __forceinline__ void advance(const XcMachLabels& s, u64 step)
    {
        // In 64 bits: p may be above 2^31.
        const u64 next = residue + step;
        residue = (u32)(next >= s.prime ? next - s.prime : next);
    }
    __device__ __forceinline__ u32 bucket(const XcMachLabels& s) const
    {
        const u32 rest = residue - __umulhi(residue, s.by_buckets) * s.n_buckets;
        return rest >= s.n_buckets ? rest - s.n_buckets : rest;
    }
};

// The high half of a x + b, scaled to B.
struct XcShift {
    u64 value;
    XC_INLINE u64 step(const XcMachLabels&, XcMachHash hash, u32 labels) { return hash.factor * labels; }
    XC_INLINE XcShift of(const XcMachLabels&, XcMachHash hash, u32 label)
    {
        return XcShift{hash.factor * label + hash.offset};
    }
    __device__ __forceinline__ void advance(const XcMachLabels&, u64 step) { value += step; }
    __device__ __forceinline__ u32 bucket(const XcMachLabels& s) const
    {
        return __umulhi((u32)(value >> 32), s.n_buckets);
    }
};

XC_INLINE void xc_mach_pass(const XcMachPassed& passed, u32 query, u32 label)
{
    const u32 at = atomicAdd(&passed.n[query], 1u);
    if (at < passed.room) passed.labels[(u64)query * passed.room + at] = label;
}

// Scores that stand one query after the other, n each, become lines; queries that are not there get zeros. Also of each
// query its least and largest score, as numbers that ascend with them, and the place of the first that is not finite:
// the caller begins these with ~0, 0 and ~0. 256 threads, any number of blocks.
struct XcMachLines {
    const float* scores;
    float* lines;
    u32* least;
    u32* largest;
    u64* not_finite;
    u64 n;
    u32 n_queries, pad;
};

XC_KERNEL __launch_bounds__(256) xc_mach_lines(XcMachLines s)
{
    __shared__ float tile[32][33];
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    u32 least[4], largest[4];
    u64 not_finite[4];
#pragma unroll
    for (int t = 0; t < 4; ++t) {
        least[t] = ~0u;
        largest[t] = 0;
        not_finite[t] = ~0ull;
    }
    for (u64 first = (u64)blockIdx.x * 32; first < s.n; first += (u64)gridDim.x * 32) {
        const u64 place = first + lane;
#pragma unroll
        for (int t = 0; t < 4; ++t) {
            const u32 query = warp + 8 * t;
            const bool is_there = query < s.n_queries && place < s.n;
            const float score = is_there ? s.scores[query * s.n + place] : 0.f;
            tile[query][lane] = score;
            if (!is_there) continue;
            const u32 bits = __float_as_uint(score), ascending = bits >> 31 ? ~bits : bits | 0x80000000u;
            least[t] = min(least[t], ascending);
            largest[t] = max(largest[t], ascending);
            const bool is_finite = (bits & 0x7f800000u) != 0x7f800000u;
            if (!is_finite && place < not_finite[t]) not_finite[t] = place;
        }
        __syncthreads();
#pragma unroll
        for (int t = 0; t < 4; ++t) {
            const u32 row = warp + 8 * t;
            if (first + row < s.n) s.lines[(first + row) * XC_QUERIES + lane] = tile[lane][row];
        }
        __syncthreads();
    }
#pragma unroll
    for (int t = 0; t < 4; ++t) {
        const u32 query = warp + 8 * t;
        if (query >= s.n_queries) continue;
        atomicMin(&s.least[query], least[t]);
        atomicMax(&s.largest[query], largest[t]);
        if (not_finite[t] != ~0ull) atomicMin(&s.not_finite[query], not_finite[t]);
    }
}

// Upper bounds of n lines of scores: a score is at most its query's least one + bound / scale. A scale of 0 makes all
// bounds 0. 256 threads, any number of blocks.
XC_KERNEL __launch_bounds__(256) xc_mach_bounds(
    const float* lines, const float* least, const float* scales, u64 n, u8* bounds)
{
    // The stride is a multiple of 32: a thread keeps its query.
    const u64 begin = (u64)blockIdx.x * 256 + threadIdx.x;
    const float low = least[begin & 31], scale = scales[begin & 31];
    for (u64 i = begin; i < n * XC_QUERIES; i += (u64)gridDim.x * 256) {
        // Three operations are rounded to nearest; 1e-6 is more than their errors.
        const float steps = (lines[i] - low) * scale * 1.000001f;
        const u32 whole = (u32)steps;
        bounds[i] = (u8)min((float)whole < steps ? whole + 1 : whole, 255u);
    }
}

// For each of n lines a bit a query: whether its score is above the query's bar. 256 threads, any number of blocks.
XC_KERNEL __launch_bounds__(256) xc_mach_marks(const float* lines, const float* bars, u64 n, u32* marks)
{
    const u32 lane = threadIdx.x & 31;
    const float bar = bars[lane];
    for (u64 i = (u64)blockIdx.x * 8 + (threadIdx.x >> 5); i < n; i += (u64)gridDim.x * 8) {
        const u32 word = __ballot_sync(XC_ALL_LANES, lines[i * XC_QUERIES + lane] > bar);
        if (lane == 0) marks[i] = word;
    }
}

// Labels of a thread of the sums.
#define XC_SUMMED 4

// Labels whose bounds add up to their query's limit. Two threads share a label, 16 queries each; sums have 16 bits.
// 256 threads and 512 labels a block.
template <class Hash>
XC_INLINE void xc_mach_sum(const XcMachLabels& s, const u8* bounds, const u32* limits, const XcMachPassed& passed)
{
    __shared__ u64 steps[XC_REPETITIONS];
    if (threadIdx.x < s.n_repetitions) steps[threadIdx.x] = Hash::step(s, s.hashes[threadIdx.x], 128);
    __syncthreads();
    const u32 query = (threadIdx.x & 1) * 16;
    const u64 begin = (u64)blockIdx.x * (128 * XC_SUMMED) + (threadIdx.x >> 1);
    u32 sum[XC_SUMMED][8];
#pragma unroll
    for (int j = 0; j < XC_SUMMED; ++j)
#pragma unroll
        for (int i = 0; i < 8; ++i) sum[j][i] = 0;
    for (u32 r = 0; r < s.n_repetitions; ++r) {
        Hash hash = Hash::of(s, s.hashes[r], s.first + (u32)begin);
        const u8* const row = bounds + (u64)r * s.n_buckets * XC_QUERIES + query;
        const u64 step = steps[r];
#pragma unroll
        for (int j = 0; j < XC_SUMMED; ++j) {
            const uint4 line = *reinterpret_cast<const uint4*>(row + (u64)hash.bucket(s) * XC_QUERIES);
            const u32 words[4] = {line.x, line.y, line.z, line.w};
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                // Two sums a register: of bytes 0 and 2 of a word, and of bytes 1 and 3.
                sum[j][2 * i] += words[i] & 0x00ff00ffu;
                sum[j][2 * i + 1] += words[i] >> 8 & 0x00ff00ffu;
            }
            hash.advance(s, step);
        }
    }
#pragma unroll
    for (int t = 0; t < 16; ++t) {
        const u32 limit = limits[query + t];
#pragma unroll
        for (int j = 0; j < XC_SUMMED; ++j) {
            const u64 at = begin + 128 * j;
            const u32 total = sum[j][t / 4 * 2 + (t & 1)] >> (t & 2) * 8 & 0xffffu;
            if (total >= limit && at < s.n) xc_mach_pass(passed, query + t, s.first + (u32)at);
        }
    }
}

// Adds a and b to the lowest bits of 32 counters; the result is what they carry.
XC_INLINE u32 xc_mach_add(u32& bits, u32 a, u32 b)
{
    const u32 carry = (bits & a) | (bits & b) | (a & b);
    bits ^= a ^ b;
    return carry;
}

// Labels of a thread of the counts.
#define XC_COUNTED 8

// Labels of which enough scores are marked: all for the least, and so many for a median that its upper middle is. A
// thread counts for 32 queries at once, a register a binary digit: counters begin at 32 less the marks that are needed,
// and a label passes when one reaches 32. 256 threads and 2,048 labels a block.
template <class Hash, bool ALL>
XC_INLINE void xc_mach_count(const XcMachLabels& s, const u32* marks, const XcMachPassed& passed)
{
    __shared__ u64 steps[XC_REPETITIONS];
    if (threadIdx.x < s.n_repetitions) steps[threadIdx.x] = Hash::step(s, s.hashes[threadIdx.x], 256);
    __syncthreads();
    const u64 begin = (u64)blockIdx.x * (256 * XC_COUNTED) + threadIdx.x;
    const u32 from = 32 - (s.n_repetitions - s.n_repetitions / 2);
    u32 enough[XC_COUNTED], count[XC_COUNTED][5];
#pragma unroll
    for (int j = 0; j < XC_COUNTED; ++j) {
        enough[j] = ALL ? ~0u : 0;
#pragma unroll
        for (int i = 0; i < 5; ++i) count[j][i] = from >> i & 1 ? ~0u : 0;
    }
    for (u32 first = 0; first < s.n_repetitions; first += 4) {
        Hash hash[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const u32 r = min(first + i, s.n_repetitions - 1);
            hash[i] = Hash::of(s, s.hashes[r], s.first + (u32)begin);
        }
#pragma unroll
        for (int j = 0; j < XC_COUNTED; ++j) {
            u32 word[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const u32 r = first + i;
                word[i] = ALL ? ~0u : 0;
                if (r >= s.n_repetitions) continue;
                word[i] = __ldg(marks + (u64)r * s.n_buckets + hash[i].bucket(s));
                hash[i].advance(s, steps[r]);
            }
            if (ALL) {
                enough[j] &= word[0] & word[1] & word[2] & word[3];
                continue;
            }
            const u32 a = xc_mach_add(count[j][0], word[0], word[1]), b = xc_mach_add(count[j][0], word[2], word[3]);
            u32 carry = xc_mach_add(count[j][1], a, b);
#pragma unroll
            for (int i = 2; i < 5; ++i) {
                const u32 next = count[j][i] & carry;
                count[j][i] ^= carry;
                carry = next;
            }
            enough[j] |= carry;
        }
    }
#pragma unroll
    for (int j = 0; j < XC_COUNTED; ++j) {
        const u64 at = begin + 256 * j;
        if (at >= s.n) continue;
        for (u32 queries = enough[j]; queries; queries &= queries - 1)
            xc_mach_pass(passed, __ffs(queries) - 1, s.first + (u32)at);
    }
}

XC_KERNEL __launch_bounds__(256) xc_mach_mean_prime(
    XcMachLabels s, const u8* bounds, const u32* limits, XcMachPassed passed)
{
    xc_mach_sum<XcPrime>(s, bounds, limits, passed);
}

XC_KERNEL __launch_bounds__(256) xc_mach_mean_shift(
    XcMachLabels s, const u8* bounds, const u32* limits, XcMachPassed passed)
{
    xc_mach_sum<XcShift>(s, bounds, limits, passed);
}

XC_KERNEL __launch_bounds__(256) xc_mach_min_prime(XcMachLabels s, const u32* marks, XcMachPassed passed)
{
    xc_mach_count<XcPrime, true>(s, marks, passed);
}

XC_KERNEL __launch_bounds__(256) xc_mach_min_shift(XcMachLabels s, const u32* marks, XcMachPassed passed)
{
    xc_mach_count<XcShift, true>(s, marks, passed);
}

XC_KERNEL __launch_bounds__(256) xc_mach_median_prime(XcMachLabels s, const u32* marks, XcMachPassed passed)
{
    xc_mach_count<XcPrime, false>(s, marks, passed);
}

XC_KERNEL __launch_bounds__(256) xc_mach_median_shift(XcMachLabels s, const u32* marks, XcMachPassed passed)
{
    xc_mach_count<XcShift, false>(s, marks, passed);
}

// Statistics of labels, and the keys (xc_rank_key) of those that beat their query's bar, a key too: place i of query q
// is at kept[i * 32 + q]. A count beyond the room says that keys are missing.
struct XcMachRescore {
    const float* lines;
    const u64* bars;
    // Comparators of a network that sorts the middle of a label's scores: two places of 16 bits each.
    const u32* network;
    u64* kept;
    u32* n_kept;
    u32 n_comparators, decoder;
};

// Scores the labels that passed the screen, or the whole range where `passed` has no labels. Grid: any number of blocks
// of 128 threads, the queries. Dynamic shared memory: for a median 128 floats a repetition.
XC_KERNEL __launch_bounds__(128) xc_mach_rescore(XcMachLabels s, XcMachPassed passed, XcMachRescore to)
{
    XC_DYNAMIC_SHARED(float, values);
    const u32 query = blockIdx.y, thread = threadIdx.x;
    const u32 n = passed.labels ? min(passed.n[query], passed.room) : s.n;
    const u64 bar = to.bars[query];
    for (u64 i = (u64)blockIdx.x * 128 + thread; i < n; i += (u64)gridDim.x * 128) {
        const u32 label = passed.labels ? passed.labels[(u64)query * passed.room + i] : s.first + (u32)i;
        float statistic = to.decoder == XC_MIN ? __int_as_float(0x7f800000) : 0.f;
        for (u32 r = 0; r < s.n_repetitions; ++r) {
            const XcMachHash hash = s.hashes[r];
            const u32 bucket = s.prime ? XcPrime::of(s, hash, label).bucket(s) : XcShift::of(s, hash, label).bucket(s);
            const float score = __ldg(to.lines + ((u64)r * s.n_buckets + bucket) * XC_QUERIES + query);
            if (to.decoder == XC_MEAN) statistic = statistic + score;
            else if (to.decoder == XC_MIN) statistic = score < statistic ? score : statistic;
            else values[r * 128 + thread] = score;
        }
        if (to.decoder == XC_MEDIAN) {
            for (u32 c = 0; c < to.n_comparators; ++c) {
                const u32 pair = __ldg(to.network + c);
                const u32 a = (pair & 0xffffu) * 128 + thread, b = (pair >> 16) * 128 + thread;
                const float x = values[a], y = values[b];
                if (y < x) {
                    values[a] = y;
                    values[b] = x;
                }
            }
            const float low = values[(s.n_repetitions - 1) / 2 * 128 + thread];
            const float high = values[s.n_repetitions / 2 * 128 + thread];
            statistic = low * .5f + high * .5f;
        }
        const u64 key = xc_rank_key(statistic, label);
        if (statistic == statistic && key < bar) {
            const u32 at = atomicAdd(&to.n_kept[query], 1u);
            if (at < passed.room) to.kept[(u64)at * XC_QUERIES + query] = key;
        }
    }
}

XC_KERNEL xc_layout_mach(u32* out, u32 room)
{
    typedef XcMachLabels A;
    typedef XcMachPassed B;
    typedef XcMachLines C;
    typedef XcMachRescore D;
    xc_write_layout(out, room, sizeof(A), XC_AT(A, hashes), XC_AT(A, by_prime), XC_AT(A, prime), XC_AT(A, n_buckets),
        XC_AT(A, by_buckets), XC_AT(A, n_repetitions), XC_AT(A, first), XC_AT(A, n), sizeof(B), XC_AT(B, labels),
        XC_AT(B, n), XC_AT(B, room), XC_AT(B, pad), sizeof(C), XC_AT(C, scores), XC_AT(C, lines), XC_AT(C, least),
        XC_AT(C, largest), XC_AT(C, not_finite), XC_AT(C, n), XC_AT(C, n_queries), XC_AT(C, pad), sizeof(D),
        XC_AT(D, lines), XC_AT(D, bars), XC_AT(D, network), XC_AT(D, kept), XC_AT(D, n_kept),
        XC_AT(D, n_comparators), XC_AT(D, decoder));
}
