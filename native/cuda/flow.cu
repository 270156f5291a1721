/**
 * Flow update, one Euler step of a latent: x ← x + dt · v, where v = v_u + guide · (v_c − v_u) with guidance, else v_c.
 *
 * The reference is native/src/flow/euler.rs: f32, each operation rounded. dt = (time of the next step) − (time of this one), so its sign is
 * the direction of the flow. A velocity with guidance is `[2, branch]`, first the branch with the instruction. The values of rows that a
 * chunk continues stay unchanged (flow/device_flow.rs).
 *
 * One thread per value. A chunk is some thousand values: the launch is the cost of a step.
 */
#include "target.h"

/**
 * `count` values of a latent. `branch`: values from one branch to the next. `guided`: 1 with guidance. `prefix_values`: how many first
 * values of each row of `row` values stay unchanged; null: none.
 */
extern "C" __global__ void flow_update(float *latent, const float *velocity, uint64_t count, uint64_t branch, float dt, float guide,
                                       uint32_t guided, const uint32_t *prefix_values, uint64_t row) {
    const uint64_t at = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (at >= count || (prefix_values != nullptr && at % row < prefix_values[at / row])) return;
    const float conditional = velocity[at];
    const float unconditional = guided != 0 ? velocity[branch + at] : 0.0f;
    latent[at] += dt * (guided != 0 ? unconditional + guide * (conditional - unconditional) : conditional);
}
CPU_ENTRY(flow_update)
