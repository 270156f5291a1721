/** Reads the native result slots: fixed memory, valid from an inference's completion until its slot is freed. No view of it leaves this file. */
import { LIMITS } from "../limits.ts";
import { assert, present } from "../std/assert.ts";
import { ChunkResult, TICKET_INDEX_COUNT } from "./abi.ts";
import { memoryAt } from "./binding.ts";
import type { Channel } from "./channel.ts";
import type { ChunkResult as Chunk } from "./engine.ts";

export class ResultSlots {
  private readonly slots: readonly DataView[];

  constructor(private readonly channel: Channel) {
    const { calls, engine } = channel;
    this.slots = Array.from({ length: LIMITS.chunksMax }, (_, index) => {
      const address = present(calls.tendon_result(engine, index), `result slot ${index}`);
      return new DataView(memoryAt(address, ChunkResult.size));
    });
  }

  /** The result of an inference; its `actions` are a copy, since the caller may keep it until after the engine's end. */
  read(ticket: number): Chunk {
    const slot = this.slot(ticket);
    const field = (offset: number) => slot.getUint32(offset, true);
    const [prefill, denoise] = [field(ChunkResult.prefill_device_us), field(ChunkResult.denoise_device_us)];
    const [rows, columns] = [field(ChunkResult.rows), field(ChunkResult.columns)];
    return {
      actions: new Float32Array(slot.buffer, slot.byteOffset + ChunkResult.values, rows * columns).slice(),
      rows,
      columns,
      promptTokens: field(ChunkResult.prompt_tokens),
      cachedTokens: field(ChunkResult.cached_tokens),
      clamped: field(ChunkResult.clamped),
      cacheReset: field(ChunkResult.cache_reset) === 1,
      batch: field(ChunkResult.batch),
      replica: field(ChunkResult.replica),
      micros: {
        decoded: field(ChunkResult.decoded_us),
        queue: field(ChunkResult.queue_us),
        prefill: field(ChunkResult.prefill_us),
        denoise: field(ChunkResult.denoise_us),
        encode: field(ChunkResult.encode_us),
        device: prefill > 0 && denoise > 0 ? { prefill, denoise } : undefined,
      },
    };
  }

  /** Processor time of the decodes of an inference's frames, however that has ended. */
  decodeMs(ticket: number): number {
    return this.slot(ticket).getUint32(ChunkResult.frames_us, true) / 1000;
  }

  /** The time from an inference's start on a replica to its end, however it has ended; 0 if it did not start. */
  modelMs(ticket: number): number {
    return this.slot(ticket).getUint32(ChunkResult.model_us, true) / 1000;
  }

  /** The frame that could not be decoded, of an inference that ended so. */
  badFrame(ticket: number): number {
    return this.slot(ticket).getUint32(ChunkResult.bad_frame, true);
  }

  private slot(ticket: number): DataView {
    assert(this.channel.isOpen, "the memory of a closed engine is not read");
    return present(this.slots[ticket % TICKET_INDEX_COUNT], "a result slot");
  }
}
