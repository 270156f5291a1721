/** Views of the native result slots: fixed memory, valid from a run's completion until its slot is freed. */
import { toArrayBuffer } from "bun:ffi";
import { LIMITS } from "../limits.ts";
import { present } from "../std/assert.ts";
import { ChunkResult, TICKET_INDEX_MASK } from "./abi.ts";
import type { Channel } from "./channel.ts";
import type { ChunkResult as Chunk } from "./engine.ts";

export class ResultSlots {
  private readonly slots: readonly DataView[];

  constructor({ calls, engine }: Channel) {
    this.slots = Array.from({ length: LIMITS.chunksMax }, (_, index) => {
      const address = present(calls.tendon_result(engine, index), `result slot ${index}`);
      return new DataView(toArrayBuffer(address, 0, ChunkResult.size));
    });
  }

  /** The result of a run; its `actions` are a view of the slot. */
  read(ticket: number): Chunk {
    const slot = present(this.slots[ticket & TICKET_INDEX_MASK], "a result slot");
    const field = (offset: number) => slot.getUint32(offset, true);
    const [rows, columns] = [field(ChunkResult.rows), field(ChunkResult.columns)];
    return {
      actions: new Float32Array(slot.buffer, slot.byteOffset + ChunkResult.values, rows * columns),
      rows,
      columns,
      promptTokens: field(ChunkResult.prompt_tokens),
      cachedTokens: field(ChunkResult.cached_tokens),
      clamped: field(ChunkResult.clamped),
      cacheReset: field(ChunkResult.cache_reset) === 1,
      micros: {
        decoded: field(ChunkResult.decoded_us),
        queue: field(ChunkResult.queue_us),
        prefill: field(ChunkResult.prefill_us),
        denoise: field(ChunkResult.denoise_us),
        encode: field(ChunkResult.encode_us),
      },
    };
  }
}
