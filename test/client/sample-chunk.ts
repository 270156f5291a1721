/** An action chunk as a service sends it. */
export const CHUNK = {
  session_id: "anon-1",
  step: 0,
  dt: 1 / 30,
  action_dim: 14,
  action_space: "joint_position",
  actions: Array.from({ length: 30 }, (_, row) => Array.from({ length: 14 }, (_, column) => row / 100 - column / 10)),
  next_frames_per_camera: 1,
  timing_ms: { decode: 1, queue: 0.1, prefill: 10, denoise: 12, encode: 0.2 },
};

/** The columns of its rows. */
export const CHUNK_COLUMNS = ["left", "right"].flatMap((side) => [
  ...[1, 2, 3, 4, 5, 6].map((joint) => ({ name: `${side}_joint_${joint}`, unit: "rad" })),
  { name: `${side}_gripper`, unit: "0-1" },
]);
