/** Generated from native/src/layout.rs by `cargo run --bin abi`; a test compares it with the library. Do not edit. */

export const ABI_VERSION = 2;
export const OBSERVATION_FRAMES_MAX = 16;
export const STATE_VALUES_MAX = 64;
export const CHUNK_VALUES_MAX = 2048;
export const MODELS_MAX = 16;
export const JPEG_BYTES_MAX = 262144;
export const JPEG_EDGE_MAX = 4096;
export const ERROR_TEXT_BYTES = 512;
export const NO_SLOT = 4294967295;
export const NO_STEP = 4294967295;
export const TICKET_KIND_SHIFT = 28;
export const TICKET_INDEX_MASK = 65535;

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
} as const;

/** Ticket kinds. */
export const KIND = {
  frame: 0,
  chunk: 1,
  model: 2,
} as const;

/** Sizes and offsets in bytes. */
export const OpenOptions = {
  size: 16,
  /** u32 */
  abi_version: 0,
  /** u32 */
  decode_threads: 4,
  /** u32 */
  chunks_max: 8,
  /** u32 */
  frames_max: 12,
} as const;

export const ObserveRequest = {
  size: 356,
  /** u32 */
  model: 0,
  /** u32 */
  slot: 4,
  /** u32 */
  step: 8,
  /** u32 */
  seed_low: 12,
  /** u32 */
  seed_high: 16,
  /** u32 */
  turn: 20,
  /** u32 */
  fail_step: 24,
  /** u32 */
  frames_len: 28,
  /** u32 */
  state_len: 32,
  /** u32[] */
  frames: 36,
  /** f32[] */
  state: 100,
} as const;

export const ChunkResult = {
  size: 8240,
  /** u32 */
  rows: 0,
  /** u32 */
  columns: 4,
  /** u32 */
  prompt_tokens: 8,
  /** u32 */
  cached_tokens: 12,
  /** u32 */
  clamped: 16,
  /** u32 */
  cache_reset: 20,
  /** u32 */
  decoded_us: 24,
  /** u32 */
  queue_us: 28,
  /** u32 */
  prefill_us: 32,
  /** u32 */
  denoise_us: 36,
  /** u32 */
  encode_us: 40,
  /** u32 */
  batch: 44,
  /** f32[] */
  values: 48,
} as const;

export const Stats = {
  size: 104,
  /** u64 */
  allocations: 0,
  /** u64 */
  runtime_allocations_last: 8,
  /** u64 */
  frames_decoded: 16,
  /** u64 */
  frames_refused: 24,
  /** u64 */
  chunks_run: 32,
  /** u64 */
  chunks_failed: 40,
  /** u64 */
  chunks_cancelled: 48,
  /** u64 */
  values_clamped: 56,
  /** u64 */
  memory_bytes_held: 64,
  /** u64 */
  locked_bytes: 72,
  /** u64 */
  tensor_bytes: 80,
  /** u32 */
  frames_free: 88,
  /** u32 */
  chunks_free: 92,
  /** u32 */
  slots_held: 96,
  /** u32 */
  reserved: 100,
} as const;

export const MemoryState = {
  size: 16,
  /** u64 */
  digest: 0,
  /** u32 */
  frames: 8,
  /** u32 */
  reserved: 12,
} as const;
