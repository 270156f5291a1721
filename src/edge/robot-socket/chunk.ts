/**
 * `action_chunk` messages: as text, or with `f32` as text and the rows' bytes after it. What is kept for a repeat is the text,
 * and after a line break, which no JSON on one line has, the bytes in base64.
 */
import type { Manifest } from "../../bundle/manifest.ts";
import type { Chunk, Form } from "../../robot/attempt.ts";
import { rowsText } from "../../std/float32.ts";
import { chunkFields, chunkUsage, usageObject } from "../robot/chunk.ts";
import type { ActionsFormat } from "./messages.ts";

/** What goes out, in this order. */
export type Sent = readonly [text: string] | readonly [text: string, rows: Uint8Array];

interface Facts {
  readonly generationId: string;
  readonly observationId: string | undefined;
  readonly manifest: Manifest;
}

/** The form of a chunk; `sent` is there once its text was made. */
export class SocketForm {
  private out: Sent | undefined;

  constructor(
    private readonly facts: Facts,
    private readonly format: ActionsFormat,
  ) {}

  get sent(): Sent | undefined {
    return this.out;
  }

  get form(): Form<string | Uint8Array> {
    const json = this.format === "json";
    return {
      rows: (actions, rows, columns) => (json ? rowsText(actions, rows, columns) : bytesOf(actions, rows * columns)),
      text: (chunk) => {
        const text = messageText(this.facts, chunk);
        this.out = typeof chunk.rows === "string" ? [text] : [text, chunk.rows];
        return this.facts.observationId === undefined ? text : keptText(this.out);
      },
    };
  }
}

function messageText({ generationId, observationId, manifest }: Facts, chunk: Chunk<string | Uint8Array>): string {
  const { before, after } = chunkFields(manifest, chunk);
  const head = {
    type: "action_chunk",
    id: generationId,
    ...(observationId === undefined ? {} : { observation_id: observationId }),
    usage: usageObject(chunkUsage(chunk)),
    ...before,
  };
  const columns = manifest.action.columns.length;
  const rows =
    typeof chunk.rows === "string"
      ? `"actions":${chunk.rows}`
      : `"rows":${chunk.rows.length / (FLOAT_BYTES * columns)}`;
  return `${JSON.stringify(head).slice(0, -1)},${rows},${JSON.stringify(after).slice(1)}`;
}

const FLOAT_BYTES = 4;

/** Little-endian, as every machine that Bun runs on; a copy, because the view is the engine's. */
function bytesOf(actions: Float32Array, values: number): Uint8Array {
  return new Uint8Array(actions.buffer, actions.byteOffset, values * FLOAT_BYTES).slice();
}

function keptText([text, rows]: Sent): string {
  return rows === undefined ? text : `${text}\n${Buffer.from(rows).toString("base64")}`;
}

/** The same chunk again, in the form that this connection asked for. */
export function replayed(kept: string, format: ActionsFormat): Sent {
  const [text = "", base64] = kept.split("\n");
  const message = `${text.slice(0, -1)},"replayed":true}`;
  if (format === "json") return [base64 === undefined ? message : withActions(message, Buffer.from(base64, "base64"))];
  return base64 === undefined ? withBytes(message) : [message, Buffer.from(base64, "base64")];
}

interface WithBytes {
  readonly rows: number;
  readonly action_dim: number;
}

function withActions(message: string, bytes: Buffer): string {
  const { rows, action_dim: columns } = JSON.parse(message) as WithBytes;
  const values = Float32Array.from({ length: rows * columns }, (_, index) => bytes.readFloatLE(index * FLOAT_BYTES));
  return message.replace(`"rows":${rows}`, `"actions":${rowsText(values, rows, columns)}`);
}

function withBytes(message: string): Sent {
  const { actions } = JSON.parse(message) as { readonly actions: readonly (readonly number[])[] };
  const values = Float32Array.from(actions.flat());
  const text = message.replace(/"actions":\[\[.*?\]\]/, `"rows":${actions.length}`);
  return [text, new Uint8Array(values.buffer)];
}
