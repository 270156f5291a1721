/** `tendon logout`: revokes the saved key at its service and removes it here; `--local`: removes it here alone. */
import { type Credentials, readCredentials, removeCredentials } from "../account/credentials.ts";
import { countModels, ErrorReply } from "../client/http.ts";
import { revokeKey } from "../client/oauth.ts";
import { hasOrigin, isFor, owner, safePrefix, serviceUrl } from "../client/sign-in.ts";
import { clientConfig } from "../config/environment.ts";
import { EXIT, Problem } from "../std/problem.ts";
import { BASE_URL_FLAG, type Command } from "./frame/command.ts";
import { answer, printNote } from "./frame/print.ts";

export const logout: Command = {
  name: "logout",
  summary: "Revoke the saved API key and remove it from this machine.",
  flags: {
    local: { about: "Only remove it from this machine: the key stays active." },
    "base-url": BASE_URL_FLAG,
    json: { about: "Print what was done as one JSON object." },
  },
  async run(given) {
    const { apiKey, credentialsPath } = clientConfig();
    const saved = await readCredentials(credentialsPath);
    if (saved === undefined) {
      const other = apiKey === undefined ? "" : "; the key in TENDON_API_KEY is not touched by logout: unset it";
      return new Problem(`not signed in: there is no key in ${credentialsPath}${other}`, EXIT.notSignedIn);
    }
    const flag = given.text("base-url");
    const done = await (given.on("local") ? forget : revoke)(saved, flag, credentialsPath);
    if (done instanceof Problem) return done;
    await answer(given, { ...done.facts, credentials: credentialsPath }, done.words);
    if (apiKey !== undefined) {
      await printNote(
        "TENDON_API_KEY is set and still in use: logout ends the saved key alone. Unset it to be signed out.",
      );
    }
    return EXIT.done;
  },
};

async function revoke(saved: Credentials | Problem, flag: string | undefined, path: string) {
  if (saved instanceof Problem) return new Problem(saved.message, EXIT.notSignedIn);
  const url = serviceUrl(flag, saved.base_url);
  if (url instanceof Problem) return url;
  if (!isFor(saved, url)) return otherService(saved, url, path);
  // A service answers 200 when it revokes a key that it does not know (RFC 7009), so first ask whether it knows this one.
  const models = await countModels({ url, apiKey: saved.api_key });
  const dead = models instanceof ErrorReply && models.status === 401;
  if (dead && !hasOrigin(saved, url)) return otherService(saved, url, path);
  const active = dead ? undefined : models instanceof Problem ? models : await revokeKey(url, saved.api_key);
  if (active) {
    return new Problem(
      `${active.message}; the key is kept: try again later, or remove it from this machine alone with 'tendon logout --local' (it then stays active)`,
      active.exit,
    );
  }
  const left = await removeCredentials(path);
  if (left) return new Problem(`the key is revoked, but ${left.message}`);
  const prefix = safePrefix(saved.api_key);
  return {
    facts: { prefix: prefix ?? null, base_url: url, revoked: true },
    words: `Signed out of ${url}: ${prefix ?? "the key"} is revoked and removed from ${path}.`,
  };
}

/** A file that cannot be read, or that others could read, is removed too. */
async function forget(saved: Credentials | Problem, flag: string | undefined, path: string) {
  if (flag !== undefined) {
    const url = serviceUrl(flag, undefined);
    if (url instanceof Problem) return url;
    if (saved instanceof Problem) return new Problem(saved.message, EXIT.notSignedIn);
    if (!isFor(saved, url)) return otherService(saved, url, path);
  }
  const left = await removeCredentials(path);
  if (left) return left;
  const file = saved instanceof Problem ? undefined : saved;
  const prefix = file && safePrefix(file.api_key);
  const where = file?.base_url === undefined ? "at its service" : `at ${file.base_url}/account`;
  return {
    facts: { prefix: prefix ?? null, base_url: file?.base_url ?? null, revoked: false },
    words: `Removed ${path}. The key${prefix === undefined ? "" : ` ${prefix}`} stays active: revoke it ${where} if nobody needs it.`,
  };
}

function otherService(saved: Credentials, url: string, path: string): Problem {
  return new Problem(
    `the key in ${path} is for ${owner(saved)}, not for ${url}; name its service with --base-url`,
    EXIT.notSignedIn,
  );
}
