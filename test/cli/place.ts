/** A fresh HOME that is signed in at a fake service, and commands in it. */
import { expect } from "bun:test";
import { join } from "node:path";
import { readCredentials, writeCredentials } from "../../src/account/credentials.ts";
import { keyPublicId } from "../../src/account/key.ts";
import type { FakeService } from "../client/fake-service.ts";
import type { Ended, Place } from "../program/program.ts";

export const fileOf = (place: Place) => join(place.home, ".config/tendon/credentials.json");
export const prefixOf = (key: string) => `tdn_${keyPublicId(key)}`;
export const gone = async (path: string) => (await readCredentials(path)) === undefined;

/** Runs a command; whatever it does, no key is in what it prints. */
export async function run(
  place: Place,
  service: FakeService,
  args: string,
  env: Record<string, string> = {},
): Promise<Ended> {
  const ended = await place.run(args.split(" "), env);
  for (const key of service.keys) expect(ended.stdout + ended.stderr).not.toContain(key.slice(16));
  return ended;
}

/** Saves a good key in the place's HOME. */
export async function signedIn(place: Place, service: FakeService): Promise<string> {
  const key = service.makeKey();
  await writeCredentials(fileOf(place), { base_url: service.url, api_key: key });
  return key;
}
