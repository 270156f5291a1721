/**
 * Rotations and poses of rows, in the order of sums of native/src/rotation.rs: the bits are the same. A rotation becomes a rotation6d, the
 * first two columns of its matrix, in place of the form that the policy has it in.
 */
#pragma once
#include "target.h"

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

/** As the wire, by rows, and quaternions with the scalar first and last (native/src/rotation.rs: `Form`). */
enum Form : uint32_t { COLUMNS = 0, ROWS = 1, QUATERNION_WXYZ = 2, QUATERNION_XYZW = 3 };

/** Three columns. */
struct Matrix {
    double column[3][3];
};

DEVICE double dot(const double a[3], const double b[3]) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

DEVICE bool finite(float value) { return (bits_of(value) & 0x7f800000u) != 0x7f800000u; }

/** Greater than every finite number. A comparison with what is no number is false. */
constexpr double BEYOND = 1.7976931348623157e308;

/** Gram-Schmidt on a rotation6d. False when its two columns span no plane, and when a value is no finite number. */
DEVICE bool matrix_of(const float *six, Matrix *matrix) {
    constexpr double LENGTH_MIN = 1e-6, SINE_MIN = 1e-4;
    const double a1[3] = {six[0], six[1], six[2]}, a2[3] = {six[3], six[4], six[5]};
    const double len1 = sqrt(dot(a1, a1)), len2 = sqrt(dot(a2, a2));
    if (!(len1 >= LENGTH_MIN && len2 >= LENGTH_MIN && len1 + len2 <= BEYOND)) return false;
    double *b1 = matrix->column[0], *b2 = matrix->column[1], *b3 = matrix->column[2];
    for (int axis = 0; axis < 3; axis++) b1[axis] = a1[axis] / len1;
    const double along = dot(b1, a2);
    const double across[3] = {a2[0] - along * b1[0], a2[1] - along * b1[1], a2[2] - along * b1[2]};
    const double height = sqrt(dot(across, across));
    if (height < SINE_MIN * len2) return false;
    for (int axis = 0; axis < 3; axis++) b2[axis] = across[axis] / height;
    b3[0] = b1[1] * b2[2] - b1[2] * b2[1];
    b3[1] = b1[2] * b2[0] - b1[0] * b2[2];
    b3[2] = b1[0] * b2[1] - b1[1] * b2[0];
    return true;
}

/** Of a state that is no rotation: what is turned by it is no number. */
DEVICE Matrix turn_of(const float *six) {
    Matrix matrix;
    if (!matrix_of(six, &matrix)) {
        for (int at = 0; at < 9; at++) matrix.column[at / 3][at % 3] = float_of(0x7fc00000u);
    }
    return matrix;
}

DEVICE bool settle_quaternion(float *six, double w, double x, double y, double z) {
    const double square = w * w + x * x + y * y + z * z;
    if (!(square >= 1e-6 * 1e-6 && square <= BEYOND)) return false;
    const double s = 2.0 / square;
    six[0] = static_cast<float>(1.0 - s * (y * y + z * z));
    six[1] = static_cast<float>(s * (x * y + w * z));
    six[2] = static_cast<float>(s * (x * z - w * y));
    six[3] = static_cast<float>(s * (x * y - w * z));
    six[4] = static_cast<float>(1.0 - s * (x * x + z * z));
    six[5] = static_cast<float>(s * (y * z + w * x));
    return true;
}

/** The policy's rotation, at the beginning of `six`, to a rotation6d. False when it is none; `six` is then as it was. */
DEVICE bool settle(uint32_t form, float *six) {
    if (form == QUATERNION_WXYZ) return settle_quaternion(six, six[0], six[1], six[2], six[3]);
    if (form == QUATERNION_XYZW) return settle_quaternion(six, six[3], six[0], six[1], six[2]);
    Matrix matrix;
    if (!matrix_of(six, &matrix)) return false;
    for (int axis = 0; axis < 3; axis++) {
        six[axis] = static_cast<float>(form == ROWS ? matrix.column[axis][0] : matrix.column[0][axis]);
        six[axis + 3] = static_cast<float>(form == ROWS ? matrix.column[axis][1] : matrix.column[1][axis]);
    }
    return true;
}

DEVICE void turned(const Matrix &turn, const float *vector, double to[3]) {
    const double x = vector[0], y = vector[1], z = vector[2];
    for (int axis = 0; axis < 3; axis++) {
        to[axis] = turn.column[0][axis] * x + turn.column[1][axis] * y + turn.column[2][axis] * z;
    }
}

/** A pose that is relative to `at`, turned by `turn`, to an absolute one, in place. False when a value of it is no finite number. */
DEVICE bool compose(const Matrix &turn, const float *at, float *position, float *rotation) {
    double moved[3], first[3], second[3];
    turned(turn, position, moved);
    turned(turn, rotation, first);
    turned(turn, rotation + 3, second);
    bool whole = true;
    for (int axis = 0; axis < 3; axis++) {
        position[axis] = static_cast<float>(moved[axis] + static_cast<double>(at[axis]));
        rotation[axis] = static_cast<float>(first[axis]);
        rotation[axis + 3] = static_cast<float>(second[axis]);
        whole = whole && finite(position[axis]) && finite(rotation[axis]) && finite(rotation[axis + 3]);
    }
    return whole;
}
