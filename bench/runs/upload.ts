/** Uploads of the same bytes again and again, into one run of a service. */
import { Problem } from "../../src/std/problem.ts";
import { atOnce } from "../at-once.ts";

export interface Store {
  /** `…/v1/robot/runs/ROBOT/RUN`. */
  readonly url: string;
  readonly apiKey: string;
}

/** `count` files by PUT. */
export function putFiles(
  store: Store,
  bytes: Uint8Array,
  count: number,
  workers: number,
): Promise<undefined | Problem> {
  return atOnce(workers, count, (number) => sent(store, `/files/file-${number}`, "PUT", bytes));
}

/** The parts of one upload of `count` times the bytes; the id of the upload, which is not finished. */
export async function putParts(
  store: Store,
  bytes: Uint8Array,
  count: number,
  workers: number,
): Promise<string | Problem> {
  const size = bytes.length * count;
  const started = await asked(store, "/uploads/large", "POST", JSON.stringify({ size }));
  if (started instanceof Problem) return started;
  const { upload_id, part_size } = (await started.json()) as { upload_id: string; part_size: number };
  if (part_size !== Math.min(bytes.length, size)) return new Problem(`the service's part size is ${part_size}`);
  const address = (part: number) => `/uploads/large?upload_id=${upload_id}&part=${part}`;
  const failed = await atOnce(workers, count, (part) => sent(store, address(part), "PUT", bytes));
  return failed ?? upload_id;
}

export function finishParts(store: Store, uploadId: string): Promise<undefined | Problem> {
  return sent(store, `/uploads/large?upload_id=${uploadId}`, "POST", "{}");
}

async function sent(store: Store, rest: string, method: string, body: Uint8Array | string) {
  const answer = await asked(store, rest, method, body);
  if (answer instanceof Problem) return answer;
  await answer.arrayBuffer();
  return undefined;
}

async function asked({ url, apiKey }: Store, rest: string, method: string, body: Uint8Array | string) {
  try {
    const headers = { authorization: `Bearer ${apiKey}` };
    const answer = await fetch(`${url}${rest}`, { method, headers, body: body as string });
    if (answer.ok) return answer;
    return new Problem(`${method} ${rest} was answered ${answer.status}: ${await answer.text()}`);
  } catch (error) {
    return new Problem(`${method} ${rest}: ${(error as Error).message}`);
  }
}

/** Random: no disk makes them smaller. */
export function randomBytes(length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  // At most 64 KiB at once.
  for (let at = 0; at < length; at += 65_536) crypto.getRandomValues(bytes.subarray(at, Math.min(at + 65_536, length)));
  return bytes;
}
