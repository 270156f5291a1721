/** Generated from native/src/core/layout.rs by `cargo run --bin abi`; a test compares it with the library. Do not edit. */

export const ABI_VERSION = 12;
export const OBSERVATION_FRAMES_MAX = 16;
export const STATE_VALUES_MAX = 64;
export const CHUNK_VALUES_MAX = 2048;
export const MODELS_MAX = 16;
export const JPEG_BYTES_MAX = 262144;
export const JPEG_EDGE_MAX = 4096;
export const ERROR_TEXT_BYTES = 512;
export const NO_SLOT = 4294967295;
export const NO_STEP = 4294967295;
export const TICKET_KIND_STEP = 2251799813685248;
export const TICKET_INDEX_COUNT = 65536;

/** Result codes of every call: 0 is success, a positive number a ticket. */
export const STATUS = {
  ok: 0,
  misuse: -1,
  busy: -2,
  image: -3,
  tooLong: -4,
  cancelled: -5,
  model: -6,
  load: -7,
  panic: -8,
  lost: -9,
  replicaOut: -10,
  syntax: -11,
  depth: -12,
  values: -13,
  decoder: -14,
  outOfMemory: -15,
  deviceLost: -16,
  badBundle: -17,
  size: -18,
} as const;

/** Ticket kinds. */
export const KIND = {
  frame: 0,
  chunk: 1,
  model: 2,
} as const;

/** What goes wrong with an inference on purpose. */
export const FAULT = {
  none: 0,
  hang: 1,
  device: 2,
  panic: 3,
} as const;

/** The form of a long string of a body. */
export const BODY_TEXT = {
  raw: 0,
  narrow: 1,
  wide: 2,
  jpeg: 3,
  jpegBytes: 4,
  jpegDamaged: 5,
} as const;

/** Sizes and offsets in bytes; a field is a u32 where nothing else is said. */
export const OpenOptions = {
  size: 16,
  abi_version: 0,
  decode_threads: 4,
  chunks_max: 8,
  frames_max: 12,
} as const;

export const ObserveRequest = {
  size: 8624,
  /** f64 */
  model: 0,
  /** f64[] */
  frames: 8,
  slot: 136,
  step: 140,
  seed_low: 144,
  seed_high: 148,
  turn: 152,
  fail_step: 156,
  fault: 160,
  frames_len: 164,
  state_len: 168,
  prefix_rows: 172,
  /** f32[] */
  state: 176,
  /** f32[] */
  prefix: 432,
} as const;

export const ChunkResult = {
  size: 8264,
  rows: 0,
  columns: 4,
  prompt_tokens: 8,
  cached_tokens: 12,
  clamped: 16,
  cache_reset: 20,
  decoded_us: 24,
  queue_us: 28,
  prefill_us: 32,
  denoise_us: 36,
  prefill_device_us: 40,
  denoise_device_us: 44,
  encode_us: 48,
  batch: 52,
  frames_us: 56,
  bad_frame: 60,
  model_us: 64,
  replica: 68,
  /** f32[] */
  values: 72,
} as const;

/** Every field is a u64. */
export const Stats = {
  size: 176,
  allocations: 0,
  runtime_allocations_last: 8,
  frames_decoded: 16,
  frames_refused: 24,
  chunks_run: 32,
  chunks_failed: 40,
  chunks_cancelled: 48,
  values_clamped: 56,
  memory_bytes_held: 64,
  parked_bytes_held: 72,
  sessions_parked: 80,
  sessions_brought_back: 88,
  parking_us: 96,
  panics: 104,
  locked_bytes: 112,
  tensor_bytes: 120,
  frames_free: 128,
  chunks_free: 136,
  slots_held: 144,
  replicas: 152,
  replicas_out: 160,
  slots_parked: 168,
} as const;

export const ConnectionNote = {
  size: 48,
  /** u64 */
  cookie: 0,
  /** u64 */
  received: 8,
  /** u32[] */
  address: 16,
  port: 32,
  fd: 36,
  gone: 40,
  reserved: 44,
} as const;

export const BodyRules = {
  size: 24,
  depth_max: 0,
  values_max: 4,
  string_bytes_max: 8,
  escaped_bytes_max: 12,
  image_bytes_max: 16,
  texts: 20,
} as const;

export const BodyResult = {
  size: 80,
  /** u64 */
  bytes: 0,
  /** u64 */
  skeleton: 8,
  /** u64 */
  table: 16,
  /** u64 */
  narrow: 24,
  /** u64 */
  wide: 32,
  /** u64 */
  images: 40,
  bytes_len: 48,
  skeleton_len: 52,
  table_len: 56,
  narrow_len: 60,
  wide_len: 64,
  images_len: 68,
  keys: 72,
  scan_us: 76,
} as const;

export const BodyText = {
  size: 32,
  form: 0,
  start: 4,
  len: 8,
  units: 12,
  blank: 16,
  jpeg_len: 20,
  image: 24,
  image_len: 28,
} as const;
