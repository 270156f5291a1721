/** Rotations of rows, in the same order of sums as native/src/core/rotation.rs: the bits are the same. */
#pragma once
#include "target.h"

DEVICE uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

DEVICE double dot(const double a[3], const double b[3]) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

DEVICE bool finite(float value) { return (bits_of(value) & 0x7f800000u) != 0x7f800000u; }

/** Greater than every finite number. A comparison with NaN is false. */
constexpr double BEYOND = 1.7976931348623157e308;

/**
 * Makes a rotation6d orthonormal in place by Gram-Schmidt. False, and `six` is unchanged, if its columns span no plane or a value is not
 * finite.
 */
DEVICE bool settle(float *six) {
    constexpr double LENGTH_MIN = 1e-6, SINE_MIN = 1e-4;
    const double a1[3] = {six[0], six[1], six[2]}, a2[3] = {six[3], six[4], six[5]};
    const double len1 = sqrt(dot(a1, a1)), len2 = sqrt(dot(a2, a2));
    if (!(len1 >= LENGTH_MIN && len2 >= LENGTH_MIN && len1 + len2 <= BEYOND)) return false;
    const double b1[3] = {a1[0] / len1, a1[1] / len1, a1[2] / len1};
    const double along = dot(b1, a2);
    const double across[3] = {a2[0] - along * b1[0], a2[1] - along * b1[1], a2[2] - along * b1[2]};
    const double height = sqrt(dot(across, across));
    if (height < SINE_MIN * len2) return false;
    for (int axis = 0; axis < 3; axis++) {
        six[axis] = static_cast<float>(b1[axis]);
        six[axis + 3] = static_cast<float>(across[axis] / height);
    }
    return true;
}
