/** A completed run in a service of a test: uploaded as a client does it, by `PUT` and in parts. */
import type { Server } from "./program.ts";

const PUT_BYTES_MAX = 16 * 2 ** 20;

export interface StoredRun {
  /** Address of the run; a file of it is at `${url}/files/PATH`. */
  readonly url: string;
  readonly authorization: string;
  /** Percent-encoded address of a file. */
  file(path: string): string;
}

export async function storeRun(
  { ready }: Server,
  name: string,
  files: Readonly<Record<string, Uint8Array<ArrayBuffer>>>,
): Promise<StoredRun> {
  const url = `${ready.url}/v1/robot/runs/${name}`;
  const authorization = `Bearer ${ready.api_key}`;
  const encoded = (path: string) => path.split("/").map(encodeURIComponent).join("/");
  const send = async <T>(method: string, rest: string, body: Uint8Array<ArrayBuffer> | string): Promise<T> => {
    const answered = await fetch(`${url}/${rest}`, { method, body, headers: { authorization } });
    const text = await answered.text();
    if (!answered.ok) throw new Error(`${method} ${rest}: ${answered.status} ${text}`);
    return JSON.parse(text);
  };
  for (const [path, bytes] of Object.entries(files)) {
    if (bytes.length <= PUT_BYTES_MAX) {
      await send("PUT", `files/${encoded(path)}`, bytes);
      continue;
    }
    const place = `uploads/${encoded(path)}`;
    const size = JSON.stringify({ size: bytes.length });
    const upload = await send<{ upload_id: string; part_size: number; parts: number }>("POST", place, size);
    for (let part = 1; part <= upload.parts; part += 1) {
      const piece = bytes.subarray((part - 1) * upload.part_size, part * upload.part_size);
      await send("PUT", `${place}?upload_id=${upload.upload_id}&part=${part}`, piece);
    }
    await send("POST", `${place}?upload_id=${upload.upload_id}`, "{}");
  }
  const listed = Object.entries(files).map(([path, { length }]) => ({ path, size: length }));
  await send("POST", "complete", JSON.stringify({ files: listed }));
  return { url, authorization, file: (path) => `${url}/files/${encoded(path)}` };
}
