/** The credentials file of the command line: the key and the service that it belongs to, readable by its owner alone. */
import { type Static, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { Problem } from "../error.ts";
import { readText, writePrivate } from "../std/file.ts";

const Credentials = Type.Object({ base_url: Type.Optional(Type.String()), api_key: Type.String() });
export type Credentials = Static<typeof Credentials>;

/** The saved credentials; undefined when there are none. */
export async function readCredentials(path: string): Promise<Credentials | undefined | Problem> {
  try {
    const text = await readText(path);
    if (text === undefined) return undefined;
    const parsed: unknown = JSON.parse(text);
    if (Value.Check(Credentials, parsed)) return parsed;
    return new Problem(`${path} lacks api_key, or base_url is no text; remove it and sign in again`);
  } catch (error) {
    const reason = error instanceof SyntaxError ? "it is not JSON" : (error as Error).message;
    return new Problem(`the credentials file ${path} cannot be read (${reason}); remove it and sign in again`);
  }
}

/** Replaces the file, atomically: mode 0600, in a folder of mode 0700. */
export async function writeCredentials(path: string, credentials: Credentials): Promise<Problem | undefined> {
  try {
    await writePrivate(path, `${JSON.stringify(credentials, null, 2)}\n`);
    return undefined;
  } catch (error) {
    return new Problem(`the credentials file ${path} cannot be written: ${(error as Error).message}`);
  }
}
