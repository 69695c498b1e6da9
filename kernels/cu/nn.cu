// Networks that answer: sums of embeddings, activations, sparse output layers, scores. Sums are in the order of the CPU;
// dense layers are the product of product.cu.
#include "best.cuh"
#include "exp.cuh"

// Instances as rows of a CSR matrix, and embeddings of their features.
struct XcBag {
    const u32* begin;
    const u32* features;
    const float* values;
    const float* table;
    const float* bias;
    float* out;
    u32 width, relu;
};

// Sums of weighted embeddings: the bias, then the features of the instance one after the other, not fused. Grid:
// instances, 256 values of a sum each.
XC_KERNEL __launch_bounds__(256) xc_nn_bag(XcBag s)
{
    const u32 column = blockIdx.y * 256 + threadIdx.x;
    if (column >= s.width) return;
    float sum = s.bias[column];
    for (u32 at = s.begin[blockIdx.x], end = s.begin[blockIdx.x + 1]; at < end; ++at)
        sum = sum + s.values[at] * __ldg(s.table + (u64)s.features[at] * s.width + column);
    s.out[(u64)blockIdx.x * s.width + column] = s.relu && !(sum > 0.f) ? 0.f : sum;
}

// The larger of 0 and each value; 0 for what is no number. 256 threads, any number of blocks.
XC_KERNEL __launch_bounds__(256) xc_nn_relu(float* values, u64 n)
{
    for (u64 i = (u64)blockIdx.x * 256 + threadIdx.x; i < n; i += (u64)gridDim.x * 256)
        values[i] = values[i] > 0.f ? values[i] : 0.f;
}

// The nearest bf16, ties to even; what is no number stays none.
XC_INLINE u32 xc_nn_bf16(float value)
{
    const u32 bits = __float_as_uint(value);
    return value != value ? 0x7fc0u : (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
}

// What products of bf16 multiply: the nearest bf16, 0 of the same sign below the smallest number of full precision. 256
// threads, any number of blocks.
XC_KERNEL __launch_bounds__(256) xc_nn_round(const float* values, u64 n, float* out)
{
    for (u64 i = (u64)blockIdx.x * 256 + threadIdx.x; i < n; i += (u64)gridDim.x * 256) {
        const float value = values[i];
        const u32 bits = __float_as_uint(value);
        out[i] = __uint_as_float(bits & 0x7f800000u ? xc_nn_bf16(value) << 16 : bits & 0x80000000u);
    }
}

// Rows in bf16 with the instances innermost: [block of 32 rows][input][16 words], of which word i is of the rows i and
// i + 16. Rows that are not there are zeros. 256 threads; grid: 32 inputs each, blocks of rows.
XC_KERNEL __launch_bounds__(256) xc_nn_lines(const float* rows, u32 n_rows, u32 n_inputs, u32* lines)
{
    __shared__ u32 tile[32][33];
    const u32 lane = threadIdx.x & 31, first = blockIdx.x * 32, input = first + lane;
#pragma unroll
    for (u32 t = threadIdx.x >> 5; t < 32; t += 8) {
        const u32 row = blockIdx.y * 32 + t;
        tile[t][lane] = row < n_rows && input < n_inputs ? xc_nn_bf16(rows[(u64)row * n_inputs + input]) : 0;
    }
    __syncthreads();
#pragma unroll
    for (u32 i = threadIdx.x; i < 512; i += 256) {
        const u32 at = i >> 4, word = i & 15;
        if (first + at < n_inputs)
            lines[((u64)blockIdx.y * n_inputs + first + at) * 16 + word] = tile[word][at] | tile[word + 16][at] << 16;
    }
}

// Types of weights.
#define XC_F32 0
#define XC_BF16 1
#define XC_F16 2
#define XC_BYTE 3

// Connections of labels: `fan_in` each, or where there are `starts` those from starts[label] to starts[label + 1].
// Numbers of inputs have 16 bits, or 32 if they are wide; a weight of one byte has its value in the table.
struct XcConnections {
    const u64* starts;
    const void* inputs;
    const void* weights;
    const float* table;
    const float* bias;
    u32 fan_in, n_inputs, is_wide, type;
};

XC_INLINE u64 xc_nn_start(const XcConnections& c, u64 label) { return c.starts ? c.starts[label] : label * c.fan_in; }

XC_INLINE u32 xc_nn_input(const XcConnections& c, u64 at)
{
    return c.is_wide ? ((const u32*)c.inputs)[at] : ((const u16*)c.inputs)[at];
}

XC_INLINE float xc_nn_weight(const XcConnections& c, u64 at)
{
    if (c.type == XC_F32) return ((const float*)c.weights)[at];
    if (c.type == XC_BYTE) return c.table[((const u8*)c.weights)[at]];
    const u16 bits = ((const u16*)c.weights)[at];
    if (c.type == XC_BF16) return xc_widen(bits);
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}

// Labels first .. first + n for some rows of inputs.
struct XcUniform {
    const u32* lines;
    u64 first;
    u32 n, n_rows;
};

// The logit of a label for each of 32 rows, a lane a row: even and odd connections are two chains of fused products,
// which are added, then the bias.
XC_INLINE float xc_nn_logit(const XcConnections& c, const u32* lines, u64 label)
{
    const u32 lane = threadIdx.x & 31;
    const u64 begin = xc_nn_start(c, label), end = xc_nn_start(c, label + 1);
    float even = 0.f, odd = 0.f;
    for (u64 first = begin; first < end; first += 32) {
        const u32 n = end - first < 32 ? (u32)(end - first) : 32;
        const u32 input = lane < n ? xc_nn_input(c, first + lane) : 0;
        const float weight = lane < n ? xc_nn_weight(c, first + lane) : 0.f;
        for (u32 j = 0; j < n; ++j) {
            const u32 line = __shfl_sync(XC_ALL_LANES, input, j), word = __ldg(lines + (u64)line * 16 + (lane & 15));
            const float x = __uint_as_float(lane < 16 ? word << 16 : word & 0xffff0000u);
            const float w = __shfl_sync(XC_ALL_LANES, weight, j);
            if (j & 1) odd = __fmaf_rn(x, w, odd);
            else even = __fmaf_rn(x, w, even);
        }
    }
    return (even + odd) + c.bias[label];
}

// Writes the logits, a row of n for each row of inputs. 256 threads; grid: 8 labels each, blocks of 32 rows.
XC_KERNEL __launch_bounds__(256) xc_nn_uniform(XcConnections c, XcUniform s, float* logits)
{
    const u32 row = blockIdx.y * 32 + (threadIdx.x & 31), at = blockIdx.x * 8 + (threadIdx.x >> 5);
    // Whole warps; no barrier follows.
    if (at >= s.n) return;
    const float z = xc_nn_logit(c, s.lines + (u64)blockIdx.y * c.n_inputs * 16, s.first + at);
    if (row < s.n_rows) logits[(u64)row * s.n + at] = z;
}

// Keeps the logits that beat the bar of their row. Threads and grid as above.
XC_KERNEL __launch_bounds__(256) xc_nn_uniform_best(XcConnections c, XcUniform s, XcBest best)
{
    const u32 row = blockIdx.y * 32 + (threadIdx.x & 31), at = blockIdx.x * 8 + (threadIdx.x >> 5);
    if (at >= s.n) return;
    const float z = xc_nn_logit(c, s.lines + (u64)blockIdx.y * c.n_inputs * 16, s.first + at);
    if (row < s.n_rows) best.offer(row, at, z, best.bars[row], xc_key_score(best.bars[row]));
}

// Logits of pairs of a row of inputs and a label: a thread has a pair. 256 threads, any number of blocks.
struct XcPairs {
    const float* rows;
    const u32* row;
    const u32* label;
    float* logits;
    u64 n;
};

XC_KERNEL __launch_bounds__(256) xc_nn_uniform_pairs(XcConnections c, XcPairs s)
{
    for (u64 i = (u64)blockIdx.x * 256 + threadIdx.x; i < s.n; i += (u64)gridDim.x * 256) {
        const u32 label = s.label[i];
        const float* const row = s.rows + (u64)s.row[i] * c.n_inputs;
        float even = 0.f, odd = 0.f;
        for (u64 at = xc_nn_start(c, label), end = xc_nn_start(c, label + 1); at < end; at += 2) {
            even = __fmaf_rn(__uint_as_float(xc_nn_bf16(row[xc_nn_input(c, at)]) << 16), xc_nn_weight(c, at), even);
            if (at + 1 == end) break;
            const float x = __uint_as_float(xc_nn_bf16(row[xc_nn_input(c, at + 1)]) << 16);
            odd = __fmaf_rn(x, xc_nn_weight(c, at + 1), odd);
        }
        s.logits[i] = (even + odd) + c.bias[label];
    }
}

// What scores are made by.
#define XC_SOFTMAX 0
#define XC_BCE 1
#define XC_NCE 2
#define XC_SQUARED_HINGE 3

// Rows of `width` logits become rows of scores, which begin `stride` values apart.
struct XcScores {
    const float* logits;
    float* scores;
    u64 stride;
    u32 width, loss;
};

// Values that are added in f32, in 16 sums, before they are added in f64.
#define XC_RUN 1024

// xc_nn::Loss::scores. 256 threads; grid: rows.
XC_KERNEL __launch_bounds__(256) xc_nn_scores(XcScores s)
{
    __shared__ float largest[8], sums[16][16];
    __shared__ double total;
    const float* const logits = s.logits + (u64)blockIdx.x * s.width;
    float* const scores = s.scores + blockIdx.x * s.stride;
    if (s.loss != XC_SOFTMAX) {
        for (u32 i = threadIdx.x; i < s.width; i += 256) {
            const float z = logits[i];
            if (s.loss == XC_BCE) {
                const float e = xc_exp(-fabsf(z)), small = e / (1.f + e);
                scores[i] = z >= 0.f ? 1.f - small : small;
            } else if (s.loss == XC_NCE) {
                scores[i] = xc_exp(z > 0.f ? 0.f : z);
            } else {
                const float slack = z >= 1.f ? 0.f : 1.f - z;
                scores[i] = xc_exp(-(slack * slack));
            }
        }
        return;
    }
    float max = __int_as_float(0xff800000);
    for (u32 i = threadIdx.x; i < s.width; i += 256) max = logits[i] > max ? logits[i] : max;
#pragma unroll
    for (u32 apart = 16; apart > 0; apart /= 2) {
        const float other = __shfl_xor_sync(XC_ALL_LANES, max, apart);
        max = other > max ? other : max;
    }
    if (threadIdx.x % 32 == 0) largest[threadIdx.x / 32] = max;
    if (threadIdx.x == 0) total = 0.;
    __syncthreads();
    for (u32 i = 0; i < 8; ++i) max = largest[i] > max ? largest[i] : max;
    // 16 runs at a time; 16 threads have a run, each every 16th value.
    for (u32 first = 0; first < s.width; first += 16 * XC_RUN) {
        const u32 begin = first + threadIdx.x / 16 * XC_RUN, end = min(begin + XC_RUN, s.width);
        float sum = 0.f;
        for (u32 i = begin + threadIdx.x % 16; i < end; i += 16) {
            const float e = xc_exp(logits[i] - max);
            scores[i] = e;
            sum = sum + e;
        }
        sums[threadIdx.x / 16][threadIdx.x % 16] = sum;
        __syncthreads();
        if (threadIdx.x == 0)
            for (u32 run = 0; run < 16 && first + run * XC_RUN < s.width; ++run) {
                double of_run = 0.;
                for (u32 i = 0; i < 16; ++i) of_run = of_run + (double)sums[run][i];
                total = total + of_run;
            }
        __syncthreads();
    }
    const float factor = (float)(1. / total);
    for (u32 i = threadIdx.x; i < s.width; i += 256) scores[i] = scores[i] * factor;
}

XC_KERNEL xc_layout_nn(u32* out, u32 room)
{
    typedef XcBag A;
    typedef XcConnections B;
    typedef XcUniform C;
    typedef XcPairs D;
    typedef XcScores E;
    xc_write_layout(out, room, sizeof(A), XC_AT(A, begin), XC_AT(A, features), XC_AT(A, values), XC_AT(A, table),
        XC_AT(A, bias), XC_AT(A, out), XC_AT(A, width), XC_AT(A, relu), sizeof(B), XC_AT(B, starts), XC_AT(B, inputs),
        XC_AT(B, weights), XC_AT(B, table), XC_AT(B, bias), XC_AT(B, fan_in), XC_AT(B, n_inputs), XC_AT(B, is_wide),
        XC_AT(B, type), sizeof(C), XC_AT(C, lines), XC_AT(C, first), XC_AT(C, n), XC_AT(C, n_rows), sizeof(D),
        XC_AT(D, rows), XC_AT(D, row), XC_AT(D, label), XC_AT(D, logits), XC_AT(D, n), sizeof(E), XC_AT(E, logits),
        XC_AT(E, scores), XC_AT(E, stride), XC_AT(E, width), XC_AT(E, loss));
}
