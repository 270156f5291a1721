/**
 * The kinds of fields that configuration tables have, as TypeBox schemas. `expected` is how messages describe a good value;
 * a default stands in the schema, as it would be written in the file; without one the key is required.
 */
import { FormatRegistry, Type } from "@sinclair/typebox";
import { Networks, networksFault } from "../std/networks.ts";

/** The address on which an HTTP server listens; port 0 picks a free one. */
export interface Address {
  readonly host: string;
  readonly port: number;
}

const HOST_PORT = /^(\[[0-9a-fA-F:.]+\]|[^:\s]+):(\d{1,5})$/;

/** Nothing that would be dropped when a request is made of it: no user, query or fragment. */
const HTTP_ADDRESS = /^https?:\/\/[^/?#@\s]+(\/[^?#\s]*)?$/;

FormatRegistry.Set("http-address", (text) => HTTP_ADDRESS.test(text) && URL.canParse(text));
FormatRegistry.Set("networks", (text) => networksFault(text) === undefined);
FormatRegistry.Set("host-port", (text) => Number(HOST_PORT.exec(text)?.[2] ?? Number.NaN) <= 65_535);

export function text(fallback?: string) {
  return Type.String({ minLength: 1, expected: "a text that is not empty", default: fallback });
}

export function flag(fallback?: boolean) {
  return Type.Boolean({ expected: "true or false", default: fallback });
}

export function whole(minimum: number, maximum: number, fallback?: number) {
  const expected = `a whole number from ${minimum} to ${maximum}`;
  return Type.Integer({ minimum, maximum, expected, default: fallback });
}

export function seconds(maximum: number, fallback: number) {
  const expected = `a number of seconds from 0.001 to ${maximum}`;
  return Type.Number({ minimum: 0.001, maximum, expected, default: fallback });
}

/** One of some words, which the message lists. */
export function oneOf<const Word extends string>(words: readonly [Word, ...Word[]], fallback?: Word) {
  const quoted = words.map((word) => `"${word}"`);
  const expected = `${quoted.slice(0, -1).join(", ")} or ${quoted.at(-1)}`;
  const schema = Type.Union(
    words.map((word) => Type.Literal(word)),
    { expected, default: fallback },
  );
  return Type.Unsafe<Word>(schema);
}

const HTTP_EXPECTED = "an http:// or https:// address without user, query and fragment";

export function httpAddress() {
  return Type.String({ format: "http-address", expected: HTTP_EXPECTED });
}

export function hostPort(fallback: string) {
  const options = { format: "host-port", expected: 'HOST:PORT, such as "127.0.0.1:9464"', default: fallback };
  return Type.Transform(Type.String(options))
    .Decode((given): Address => {
      const [, host = "", port] = HOST_PORT.exec(given) ?? [];
      return { host: host.replace(/^\[|\]$/g, ""), port: Number(port) };
    })
    .Encode(({ host, port }) => `${host.includes(":") ? `[${host}]` : host}:${port}`);
}

/** Addresses and networks, separated by commas. */
export function networks(fallback: string) {
  const expected = 'addresses and networks, such as "10.0.0.0/8, 2001:db8::7", or "none"';
  return Type.Transform(Type.String({ format: "networks", expected, default: fallback }))
    .Decode((given) => new Networks(given))
    .Encode(({ text }) => text);
}

/** US dollars per million units, as nano-dollars per unit. Text, because a TOML number would be a binary fraction. */
export function rate(fallback?: string) {
  return Type.Transform(
    Type.String({
      pattern: "^\\d{1,9}(\\.\\d{1,3})?$",
      expected: 'an amount in quotes with at most three decimal places, such as "0.60"',
      default: fallback,
    }),
  )
    .Decode((given) => {
      const [dollars = "", places = ""] = given.split(".");
      return BigInt(dollars + places.padEnd(3, "0"));
    })
    .Encode((nanos) => `${nanos / 1000n}.${String(nanos % 1000n).padStart(3, "0")}`);
}
