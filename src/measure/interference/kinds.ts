/** What else a node does while a robot is served: each kind of work as single requests, which another thread sends at a fixed rate. */
import { Problem } from "../../std/problem.ts";
import { STREAM_MODEL } from "../llm/provider.ts";
import { randomBytes } from "../runs/bytes.ts";
import { smallRequest } from "../sample/small-request.ts";

/** A service as the neighbours of a robot reach it. */
export interface Neighborhood {
  readonly url: string;
  readonly apiKey: string;
  /** Beginning of the names of what they store; another one for each measurement. */
  readonly prefix: string;
}

interface Kind {
  readonly about: string;
  readonly perSecond: number;
  /** Sends the request of this number and reads its answer; the status. */
  send(at: Neighborhood, number: number): Promise<number>;
  /** Statuses that show that the work was done. */
  readonly done: (status: number) => boolean;
}

const FILE_BYTES = 2_000_000;
/** Files of one run, so that no manifest grows over a measurement. */
const RUN_FILES = 100;
/** A stream lasts a second. */
export const STREAM = { tokens: 20, gapMs: 50 } as const;
/** Any text that a form takes for a password. */
const PASSWORD = "not-the-password-of-anybody";

/** Made when it is first sent. Random, because no disk makes that smaller. */
let file: Uint8Array<ArrayBuffer> | undefined;

const ok = (status: number): boolean => status >= 200 && status < 300;

/** Made when it is first sent; a problem where the image library is missing. */
let paid: ReturnType<typeof smallRequest> | undefined;

export const KINDS = {
  uploads: {
    about: "files of 2 MB into run storage, 20 MB/s",
    perSecond: 10,
    async send({ url, apiKey, prefix }, number) {
      const path = `/v1/robot/runs/bench/${prefix}-${Math.floor(number / RUN_FILES)}/files/file-${number}`;
      file ??= randomBytes(FILE_BYTES);
      return await statusOf(`${url}${path}`, { method: "PUT", headers: bearer(apiKey), body: file });
    },
    done: ok,
  },
  streams: {
    about: `streams of a language model, each of ${STREAM.tokens} tokens, one every ${STREAM.gapMs} ms; about 50 at once`,
    perSecond: 50,
    async send({ url, apiKey }) {
      const body = JSON.stringify({
        model: STREAM_MODEL,
        input: "Hello.",
        max_output_tokens: STREAM.tokens,
        stream: true,
      });
      const headers = { ...bearer(apiKey), "content-type": "application/json" };
      return await statusOf(`${url}/v1/responses`, { method: "POST", headers, body });
    },
    done: ok,
  },
  logins: {
    about: "people who sign in with a wrong password, each from an address of its own",
    perSecond: 4,
    async send({ url }, number) {
      const body = new URLSearchParams({ email: `person-${number}@example.org`, password: PASSWORD, next: "" });
      const address = `10.${(number >> 16) & 255}.${(number >> 8) & 255}.${number & 255}`;
      return await statusOf(`${url}/sign-in`, { method: "POST", headers: { "x-forwarded-for": address }, body });
    },
    // Whoever was compared with a password is refused; who asks too often is not even compared.
    done: (status) => status !== 429 && status < 500,
  },
  requests: {
    about: "paid requests for a chunk, whose frames cost next to nothing",
    perSecond: 200,
    async send({ url, apiKey }) {
      paid ??= smallRequest();
      const request = await paid;
      if (request instanceof Problem) return 0;
      const headers = { ...bearer(apiKey), "content-type": "application/json" };
      const body = JSON.stringify(request);
      return await statusOf(`${url}/v1/chat/completions`, { method: "POST", headers, body });
    },
    done: ok,
  },
  pages: {
    about: "the documentation and its OpenAPI document loaded",
    perSecond: 20,
    async send({ url }, number) {
      return await statusOf(`${url}${number % 2 === 0 ? "/docs" : "/openapi.json"}`, {});
    },
    done: ok,
  },
} as const satisfies Record<string, Kind>;

export type KindName = keyof typeof KINDS;
export const KIND_NAMES = Object.keys(KINDS) as KindName[];

function bearer(apiKey: string): { authorization: string } {
  return { authorization: `Bearer ${apiKey}` };
}

/** Reads the answer whole; 0 when none came. */
async function statusOf(url: string, init: RequestInit): Promise<number> {
  try {
    const response = await fetch(url, { ...init, redirect: "manual" });
    await response.bytes();
    return response.status;
  } catch {
    return 0;
  }
}
