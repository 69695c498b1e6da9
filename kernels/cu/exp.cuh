// xc_buffer::simd::exp, operation by operation.
#pragma once
#include "xc.cuh"

XC_INLINE float xc_exp(float x)
{
    // Adding and taking away 1.5 * 2^23 rounds to the nearest integer. What is no number stays none.
    const float round = 12582912.f;
    const float clamped = x < -87.3f ? -87.3f : x > 88.f ? 88.f : x;
    const float shifted = clamped * 1.44269504088896340736f + round;
    const u32 bits = __float_as_uint(shifted) - __float_as_uint(round);
    const float n = shifted - round;
    const float r = clamped - n * 0.6933594f + n * 2.1219444e-4f;
    float p = 1.f / 720.f;
    p = p * r + 1.f / 120.f;
    p = p * r + 1.f / 24.f;
    p = p * r + 1.f / 6.f;
    p = p * r + .5f;
    p = p * r + 1.f;
    p = p * r + 1.f;
    return x < -87.3f ? 0.f : p * __uint_as_float((bits + 127u) << 23);
}
