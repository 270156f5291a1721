/** The command line's credentials file: an API key and its service's address, readable by the file's owner alone. */
import { constants, type Stats } from "node:fs";
import { open, rm } from "node:fs/promises";
import { type Static, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { writePrivate } from "../std/file.ts";
import { Problem } from "../std/problem.ts";

const Credentials = Type.Object({ base_url: Type.Optional(Type.String()), api_key: Type.String() });
export type Credentials = Static<typeof Credentials>;

/** The saved credentials; undefined when there are none. A file that is not private to the user `uid` is refused. */
export async function readCredentials(
  path: string,
  uid: number | undefined = process.getuid?.(),
): Promise<Credentials | undefined | Problem> {
  try {
    const text = await readOwn(path, uid);
    if (text === undefined || text instanceof Problem) return text;
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
  return await problemOf(path, "written", writePrivate(path, `${JSON.stringify(credentials, null, 2)}\n`));
}

/** Removes the file; a missing file is no problem. */
export async function removeCredentials(path: string): Promise<Problem | undefined> {
  return await problemOf(path, "removed", rm(path, { force: true }));
}

async function problemOf(path: string, done: string, work: Promise<void>): Promise<Problem | undefined> {
  try {
    await work;
    return undefined;
  } catch (error) {
    return new Problem(`the credentials file ${path} cannot be ${done}: ${(error as Error).message}`);
  }
}

/** Checks and reads one open file: no other file can be put at the path between the check and the read. */
async function readOwn(path: string, uid: number | undefined): Promise<string | undefined | Problem> {
  // O_NONBLOCK keeps a named pipe from blocking here.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  if (file === undefined) return undefined;
  try {
    return exposed(path, await file.stat(), uid) ?? (await file.readFile("utf8"));
  } finally {
    await file.close();
  }
}

function exposed(path: string, found: Stats, uid: number | undefined): Problem | undefined {
  if (!found.isFile()) {
    return new Problem(`the credentials file ${path} is not a regular file; remove it and sign in again`);
  }
  if (uid !== undefined && found.uid !== uid) {
    return new Problem(
      `the credentials file ${path} belongs to user ${found.uid}, not to you (${uid}); remove it and sign in again, or have it given to you: chown ${uid} ${path} && chmod 600 ${path}`,
    );
  }
  if ((found.mode & 0o077) !== 0) {
    const mode = (found.mode & 0o777).toString(8).padStart(4, "0");
    return new Problem(
      `the credentials file ${path} is open to other users (mode ${mode}, expected 0600); close it: chmod 600 ${path}`,
    );
  }
  return undefined;
}
