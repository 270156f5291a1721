/** `tendon login`: a link and a code, a person who confirms them in a browser, and the key that comes back, saved. */
import { type Credentials, readCredentials, writeCredentials } from "../account/credentials.ts";
import { countModels, ErrorReply } from "../client/http.ts";
import { awaitKey, beginLogin, deviceName, type PendingLogin, revokeKey } from "../client/oauth.ts";
import { hasOrigin, isFor, isLoopback, owner, safePrefix, serviceUrl } from "../client/sign-in.ts";
import { clientConfig } from "../config/environment.ts";
import { systemClock } from "../std/clock.ts";
import { EXIT, Problem } from "../std/problem.ts";
import { BASE_URL_FLAG, type Command } from "./frame/command.ts";
import { print, printJson, printNote } from "./frame/print.ts";

export const login: Command = {
  name: "login",
  summary: "Sign this machine in: confirm a code in a browser, and save the key of this machine.",
  flags: {
    "base-url": BASE_URL_FLAG,
    json: { about: "Print one JSON object per line: the code, then the end." },
  },
  async run(given) {
    const { apiKey, credentialsPath } = clientConfig();
    const saved = await readCredentials(credentialsPath);
    if (saved instanceof Problem) return saved;
    const url = serviceUrl(given.text("base-url"), saved?.base_url);
    if (url instanceof Problem) return url;
    const here: Here = { url, credentialsPath, json: given.on("json") };
    if (apiKey !== undefined) {
      await printNote(
        `TENDON_API_KEY is set: the other commands use that key, not the one in ${credentialsPath}, until you unset it.`,
      );
    }
    if (new URL(url).protocol === "http:" && !isLoopback(url)) {
      await printNote(`${url} is plain http: anybody on the way can read the key. Use https:// if the service has it.`);
    }
    if (saved !== undefined) {
      const kept = await keep(saved, here);
      if (kept !== "dead") return kept;
    }
    return signIn(saved, here);
  },
};

interface Here {
  readonly url: string;
  readonly credentialsPath: string;
  readonly json: boolean;
}

/** A machine that is signed in keeps its key. `dead`: the service that made the saved key no longer takes it. */
async function keep(saved: Credentials, here: Here): Promise<number | Problem | "dead"> {
  if (!isFor(saved, here.url)) return otherService(saved, here);
  const models = await countModels({ url: here.url, apiKey: saved.api_key });
  if (models instanceof ErrorReply && models.status === 401) {
    // Another service on this machine may have made the key and still take it.
    return hasOrigin(saved, here.url) ? "dead" : otherService(saved, here);
  }
  if (models instanceof Problem) return models;
  // The key stays; the address of its service may have changed.
  const unsaved =
    saved.base_url === here.url
      ? undefined
      : await writeCredentials(here.credentialsPath, { ...saved, base_url: here.url });
  if (unsaved) return unsaved;
  if (here.json) await printJson({ ...signedInEvent(saved.api_key, here), kept: true });
  else {
    await print(
      `Already signed in to ${here.url}: ${safePrefix(saved.api_key) ?? "the key"} in ${here.credentialsPath} is good and stays.`,
    );
  }
  return EXIT.done;
}

function otherService(saved: Credentials, here: Here): Problem {
  const named = saved.base_url === undefined ? "" : ` --base-url ${saved.base_url}`;
  return new Problem(
    `${here.credentialsPath} holds a key for ${owner(saved)}, and ${here.url} is another service; run 'tendon logout${named}' first, ` +
      "or 'tendon logout --local' to forget that key without revoking it",
  );
}

async function signIn(before: Credentials | undefined, here: Here): Promise<number | Problem> {
  const pending = await beginLogin(here.url, deviceName());
  if (pending instanceof Problem) return pending;
  await sayCode(pending, here);
  const key = await awaitKey(here.url, pending, systemClock);
  if (key instanceof Problem) return key;
  const unsaved = await save({ base_url: here.url, api_key: key }, before, here.credentialsPath);
  if (unsaved) return undo(key, unsaved, here.url);
  if (here.json) await printJson(signedInEvent(key, here));
  else await print(`Signed in to ${here.url}: the key ${safePrefix(key)} is saved in ${here.credentialsPath}.`);
  return EXIT.done;
}

/** A login takes minutes: a key that another program saved meanwhile is not overwritten. */
async function save(made: Credentials, before: Credentials | undefined, path: string): Promise<Problem | undefined> {
  const now = await readCredentials(path);
  if (now instanceof Problem) return now;
  if (now?.api_key === before?.api_key) return writeCredentials(path, made);
  return new Problem(`${path} was changed during the login, and is left as it is`);
}

/** A key that could not be saved is revoked again: it must not stay active. */
async function undo(key: string, unsaved: Problem, url: string): Promise<Problem> {
  const active = await revokeKey(url, key);
  const end =
    active === undefined
      ? "the new key was revoked again; run 'tendon login' once this is corrected"
      : `the new key ${safePrefix(key)} could not be revoked again (${active.message}): revoke it at ${url}/account`;
  return new Problem(`${unsaved.message}; ${end}`);
}

async function sayCode(pending: PendingLogin, here: Here): Promise<void> {
  const { user_code, verification_uri, verification_uri_complete, expires_in } = pending;
  if (here.json) {
    await printJson({ event: "code", user_code, verification_uri, verification_uri_complete, expires_in });
    return;
  }
  const todo =
    verification_uri_complete === undefined
      ? "and enter this code there:"
      : "and confirm there, if the page shows this very code:";
  await print(
    [
      `To sign in to ${here.url}, open this address in a browser`,
      `    ${verification_uri_complete ?? verification_uri}`,
      todo,
      `    ${user_code}`,
      `Waiting for you, at most ${Math.ceil(expires_in / 60)} minutes. Ctrl-C gives up.`,
    ].join("\n\n"),
  );
}

function signedInEvent(key: string, here: Here): Readonly<Record<string, unknown>> {
  const { url, credentialsPath } = here;
  return { event: "signed_in", prefix: safePrefix(key) ?? null, base_url: url, credentials: credentialsPath };
}
