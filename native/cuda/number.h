/**
 * The numbers that tensors hold: f32, f16 (IEEE binary16) and bf16. Kernels compute in f32 and round once, when they store: to the
 * nearest, ties to even, as `cvt.rn` does.
 *
 * In integers, not by the hardware's conversions: the same code then runs on both targets, and what it costs is hidden behind memory.
 */
#pragma once
#include "target.h"

struct F16 {
    uint16_t bits;
};

struct Bf16 {
    uint16_t bits;
};

DEVICE uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

DEVICE float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

DEVICE float load(float value) { return value; }

DEVICE float load(Bf16 value) { return float_of(static_cast<uint32_t>(value.bits) << 16); }

DEVICE float load(F16 value) {
    const uint32_t sign = (value.bits & 0x8000u) << 16, exponent = value.bits >> 10 & 31u, fraction = value.bits & 0x3ffu;
    if (exponent == 31) return float_of(sign | 0x7f800000u | fraction << 13);
    // 2^-24, the smallest f16: the product is exact.
    if (exponent == 0) return float_of(sign | bits_of(static_cast<float>(fraction) * 5.9604644775390625e-8f));
    return float_of(sign | (exponent + 112) << 23 | fraction << 13);
}

DEVICE void store(float *to, float value) { *to = value; }

DEVICE void store(Bf16 *to, float value) {
    const uint32_t bits = bits_of(value);
    const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
    to->bits = static_cast<uint16_t>(is_nan ? (bits >> 16 | 0x40u) : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

DEVICE void store(F16 *to, float value) {
    const uint32_t bits = bits_of(value), sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
    uint32_t half;
    if (size > 0x7f800000u) {
        half = 0x7e00u;
    } else if (size >= 0x477ff000u) {
        // 65520 and more: nearer to 65536 than to the largest f16.
        half = 0x7c00u;
    } else if (size >= 0x38800000u) {
        half = (size - (112u << 23) + 0xfffu + (size >> 13 & 1u)) >> 13;
    } else {
        // Below 2^-14: a whole number of 2^-24, which the addition of 2^23 rounds.
        half = bits_of(float_of(size) * 16777216.0f + 8388608.0f) - 0x4b000000u;
    }
    to->bits = static_cast<uint16_t>(sign | half);
}

/** Of a tensor's values, in the names of kernels. */
#define FOR_EACH_NUMBER(define) define(f32, float) define(f16, F16) define(bf16, Bf16)
