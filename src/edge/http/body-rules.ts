/** What a route takes as its body. */
import { Failure } from "../../error/core.ts";
import { type BodyContext, readBody } from "./body.ts";
import { type BodyStream, streamBody } from "./body-stream.ts";
import { type JsonObject, parseObject } from "./json.ts";

export interface RuleContext extends BodyContext {
  /** Asked when the body is there: why it is not parsed. */
  readonly refusal: () => Failure | undefined;
  /** Told how much processor time the parsing took, milliseconds. */
  readonly spent: (ms: number) => void;
}

export interface BodyRule<Body> {
  readonly reads: boolean;
  read(request: Request, context: RuleContext): Promise<Read<Body> | Failure>;
}

interface Read<Body> {
  readonly value: Body;
  /** Gives its share of the memory for bodies back; called once, after the handler. */
  release(): void;
}

const keepsNothing = () => {};

export const NO_BODY: BodyRule<undefined> = {
  reads: false,
  read: async () => ({ value: undefined, release: keepsNothing }),
};

const SMALLER = "send less in one request";

/** One JSON object, its depth and number of values bounded. `smaller`: what a client does whose body is too large. */
export function json(bytesMax: number, smaller = SMALLER): BodyRule<JsonObject> {
  return objectBody(bytesMax, smaller, false);
}

/** The same, where no body means an empty object. */
export function optionalJson(bytesMax: number): BodyRule<JsonObject> {
  return objectBody(bytesMax, SMALLER, true);
}

function objectBody(bytesMax: number, smaller: string, mayBeEmpty: boolean): BodyRule<JsonObject> {
  return {
    reads: true,
    read: async (request, context) => {
      const body = await readBody(request, { ...context, bytesMax, smaller });
      if (body instanceof Failure) return body;
      if (mayBeEmpty && body.bytes.length === 0) return { value: {}, release: () => body.release() };
      const beginMs = context.clock.monotonicMs();
      const value = context.refusal() ?? parseObject(body.bytes);
      context.spent(context.clock.monotonicMs() - beginMs);
      if (typeof value !== "string" && !(value instanceof Failure)) return { value, release: () => body.release() };
      body.release();
      return value instanceof Failure ? value : new Failure(context.answers.malformed, value);
    },
  };
}

/** The fields of a form; one that is not there is empty. */
export type Form = (field: string) => string;

/** `application/x-www-form-urlencoded`. */
export function form(bytesMax: number): BodyRule<Form> {
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
      const fields = new URLSearchParams(new TextDecoder().decode(body.bytes));
      body.release();
      return { value: (field) => fields.get(field) ?? "", release: keepsNothing };
    },
  };
}

/** Not read before the handler says where to: it takes none of the memory for bodies. */
export const STREAM: BodyRule<BodyStream> = {
  reads: true,
  read: async (request, { clock }) => ({
    value: (sink, bounds) => streamBody(request, sink, { ...bounds, clock }),
    release: keepsNothing,
  }),
};
