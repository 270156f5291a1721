/** A provider's words as a client may read them. */
import { LIMITS } from "../../limits.ts";

/** Characters of a provider's text that are read. A text may have megabytes, on which the patterns below would be slow. */
const READ_CHARS_MAX = 1_000;
const MASK = "[...]";

/** Words that are masked wherever they stand. */
const PRIVATE: readonly RegExp[] = [
  // Addresses and names of machines.
  /:\/\/|\w@\w|\blocalhost\b/i,
  /\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}/,
  /[\da-f]{0,4}:[\da-f]{0,4}:/i,
  /[\w-]:\d{2,5}(?!\d)/,
  /[a-z_-]\.[\w-]|\w\.[a-z_]/i,
  /(?:host|server|addr|address)["']?[=:]["']?\w/i,
  // Paths; a word like "and/or" is none.
  /\\|(?:^|[^\w.])[~.]{0,2}\/\w|\/[^/]*\//,
  // Keys.
  /(?:^|[^a-z0-9])(?:sk|pk|key|tok|bearer|org|proj|hf|ghp)[-_][\w*-]/i,
  /(?:key|token|secret|password|bearer)["']?[=:]["']?\w/i,
  /[\w+/=-]{24}|\*\*\*/,
];

/** Words that precede the name of a machine. */
const PLACES = new Set(
  "at host hostname server node backend upstream peer via resolve resolving reach connecting".split(" "),
);
/** Names behind such a word that are no ordinary words. */
const MACHINE = /^[a-z][\w-]*(?:-|\d)[\w-]*$/i;

const SECRETS = new Set("bearer token secret password apikey api-key api_key authorization credential".split(" "));
/** Words that follow those and give nothing away. */
const ORDINARY = new Set(
  "a an and are as at authentication authorization be bearer budget by can cannot check context count does exceeded exceeds expected expired for from generation given has have header id ids in index invalid is key length limit limits may mismatch missing must name not of on or please provided rate required scheme sequence should than that the this to token type usage use used value was were window with your".split(
    " ",
  ),
);

/**
 * A provider's sentence as a client may read it: without our key, without addresses, names of machines, paths, and words that may
 * be a secret.
 */
export function safeText(text: string, secret: string | undefined): string {
  const known = secret ? text.replaceAll(secret, MASK) : text;
  const long = known.length > READ_CHARS_MAX;
  const words = known
    .slice(0, READ_CHARS_MAX)
    .replace(/[\p{C}\s]+/gu, " ")
    .split(" ");
  // Half of a word could be half of a secret.
  if (long) words.pop();
  const safe = masked(words.filter((word) => word !== "")).join(" ");
  return long || safe.length > LIMITS.llmSaidCharsMax ? `${safe.slice(0, LIMITS.llmSaidCharsMax)}...` : safe;
}

function masked(words: readonly string[]): string[] {
  const cores: string[] = [];
  return words.map((word, index) => {
    const [, open = "", core = "", close = ""] = /^(["'`([{<]*)(.*?)([)\]}>"'`.,;:!?]*)$/.exec(word) ?? [];
    cores.push(core.toLowerCase());
    const hidden = PRIVATE.some((pattern) => pattern.test(core)) || isGiven(cores, words[index - 1] ?? "");
    return core !== "" && hidden ? `${open}${MASK}${close}` : word;
  });
}

/** Whether the words before the last one say that it is a machine's name or a secret. */
function isGiven(cores: readonly string[], before: string): boolean {
  const [third = "", second = "", first = "", core = ""] = ["", "", "", ...cores].slice(-4);
  if (PLACES.has(first) && MACHINE.test(core)) return true;
  const plain = ORDINARY.has(core) || /^\d{1,6}$/.test(core);
  if (plain) return false;
  if (SECRETS.has(first)) return true;
  if (first === "key") return /\d/.test(core) || second === "api" || before.endsWith(":");
  // "the key provided: abc123"
  const filler = /^(?:is|was|provided|given|value|used)$/.test(first);
  return filler && /\d/.test(core) && [second, third].some((one) => one === "key" || SECRETS.has(one));
}
