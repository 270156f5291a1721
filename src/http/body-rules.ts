/** What a route takes as its body. */
import { LIMITS } from "../limits.ts";
import { Failure } from "../std/failure.ts";
import type { Timer } from "../std/slices.ts";
import type { BodyUse } from "./bodies.ts";
import { type Body, type BodyContext, busy, joined, readBody } from "./body.ts";
import { type BodyStream, streamBody } from "./body-stream.ts";
import { type JsonObject, parseObject } from "./json.ts";
import { type BodyValue, scanObject } from "./scanned.ts";

interface RuleContext extends BodyContext {
  /** Asked when the body is there: why it is not parsed. */
  readonly refusal: () => Failure | undefined;
  /** Counts processor time of reading and parsing, milliseconds. */
  readonly spent: (ms: number) => void;
  /** Does work whose time is counted so. */
  readonly timed: Timer;
}

export interface BodyRule<Body> {
  readonly reads: boolean;
  read(request: Request, context: RuleContext): Promise<BodyValue<Body> | Failure>;
}

/** Processor time of the event loop until a body is in native memory: 12.8 ms for 8 MiB (two cores of an AMD EPYC, 2026-11-22). */
const READ_MS_PER_BYTE = 12.8 / (8 * 2 ** 20);

const keepsNothing = () => {};

export const NO_BODY: BodyRule<undefined> = {
  reads: false,
  read: async () => ({ value: undefined, release: keepsNothing }),
};

/** One JSON object, its depth and number of values bounded. `smaller`: what a client does whose body is too large. */
export function json(
  bytesMax: number,
  /** With `images` they are decoded, and a long string is a `LongText` while the handler runs. `mayBeEmpty`: no body is an empty object. */
  { smaller = "send less in one request", use = "texts" as BodyUse, mayBeEmpty = false } = {},
): BodyRule<JsonObject> {
  return {
    reads: true,
    read: async (request, context) => {
      const body = await readBody(request, { ...context, bytesMax, smaller });
      if (body instanceof Failure) return body;
      context.spent(body.length * READ_MS_PER_BYTE);
      if (mayBeEmpty && body.length === 0) return { value: {}, release: () => body.release() };
      const read = await readObject(body, context, use);
      if (read instanceof Failure) body.release();
      return read;
    },
  };
}

/** Its share of the memory is given back by the caller where it fails. */
async function readObject(body: Body, context: RuleContext, use: BodyUse): Promise<BodyValue<JsonObject> | Failure> {
  const { bodies, owner, answers, refusal, spent, timed } = context;
  const refused = refusal();
  if (refused) return refused;
  if (body.length <= LIMITS.parsedBodyBytesMax) {
    const value = timed(() => parseObject(joined(body)));
    if (typeof value !== "string") return { value, release: () => body.release() };
    return new Failure(answers.malformed, value);
  }
  const scanned = await scanObject(bodies, { ...body, turn: Bun.hash.crc32(owner), spent }, use, timed);
  if (scanned === undefined) return busy(context);
  if (typeof scanned === "string") return new Failure(answers.malformed, scanned);
  const release = () => {
    scanned.release();
    body.release();
  };
  return { value: scanned.value, release };
}

/** The fields of a form; one that is not there is empty. */
export type Form = (field: string) => string;

/**
 * `application/x-www-form-urlencoded`. `once`: a parameter that is sent twice, here and in the address together, is refused; one without
 * a value counts as one that is not sent (RFC 6749, section 3.2).
 */
export function form(bytesMax: number, { once = false } = {}): BodyRule<Form> {
  return {
    reads: true,
    read: async (request, context) => {
      const type = request.headers.get("content-type") ?? "";
      if (!/^application\/x-www-form-urlencoded\s*(;|$)/i.test(type)) {
        const message = "the body is not application/x-www-form-urlencoded; send it as a form does";
        return new Failure(context.answers.malformed, message);
      }
      const body = await readBody(request, { ...context, bytesMax, smaller: "send shorter fields" });
      if (body instanceof Failure) return body;
      const fields = new URLSearchParams(new TextDecoder().decode(joined(body)));
      body.release();
      const sent = [...fields].filter(([, value]) => value !== "");
      const values = new Map(sent.toReversed());
      const asked = [...new URL(request.url).searchParams].filter(([, value]) => value !== "");
      if (once && new Map([...asked, ...sent]).size < asked.length + sent.length)
        return new Failure(context.answers.malformed, "a parameter is sent more than once; send each one once");
      return { value: (field) => values.get(field) ?? "", release: keepsNothing };
    },
  };
}

/** A body that the handler reads itself: it takes none of the memory for bodies. */
export const STREAM: BodyRule<BodyStream> = {
  reads: true,
  read: async (request, { clock }) => ({
    value: (sink, bounds) => streamBody(request, sink, { ...bounds, clock }),
    release: keepsNothing,
  }),
};
