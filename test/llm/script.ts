/** What the scripted provider is told to do with a request. The protocol and the mode (stream or not) are the request's. */

export interface Call {
  readonly id?: string;
  readonly name: string;
  /** The text that the model writes: valid JSON or not. */
  readonly arguments: string;
}

export interface Tokens {
  readonly input: number;
  readonly output: number;
  readonly cached?: number;
  readonly reasoning?: number;
}

/** What a correct answer says. */
export interface Answer {
  /** Left out with calls or a refusal: no text. Left out without them: a greeting. */
  readonly text?: string;
  /** The pieces of the text when it streams, joined they are the text: a list, or how many equal ones (5). */
  readonly deltas?: number | readonly string[];
  /** Thoughts in full: `reasoning_content` in chat, an item with `reasoning_text` in Responses. */
  readonly reasoning?: string;
  /** Thoughts in short, which only Responses has. */
  readonly summary?: string;
  readonly refusal?: string;
  readonly calls?: readonly Call[];
  /** Left out: "tool_calls" with calls, else "stop". */
  readonly finish?: "stop" | "length" | "tool_calls" | "content_filter";
  /** `wire` stands where the usage stands, as it is: for wrong ones. "none" is no key in chat, null in Responses. */
  readonly usage?: Tokens | "none" | { readonly wire: unknown };
}

/** How the bytes of an answer travel. */
export interface Delivery {
  /** Each byte of the body in another write. */
  readonly split?: "bytes";
  readonly crlf?: boolean;
  /** The JSON of an event over several `data:` lines. */
  readonly multiline?: boolean;
  /** Pause before each event after the first, and before the end that a fault makes. */
  readonly gapMs?: number;
  /** `silent_close` says keep-alive and closes nevertheless, as llama.cpp's server does after a stream. */
  readonly connection?: "close" | "silent_close";
  /** Streams that no length and no chunk delimits: the end of the connection is their end. */
  readonly framing?: "chunked" | "until_close";
}

export interface Good extends Answer, Delivery {
  readonly kind: "answer";
}

/** After n deltas, and half of the next event, the connection ends; a plain answer ends in the middle of its body. */
export interface Cut extends Answer, Delivery {
  readonly kind: "cut";
  readonly after: number;
  /** FIN, RST, or a correct end of the HTTP body at an event's border, as a proxy may make of either. */
  readonly manner?: "fin" | "reset" | "polite";
}

/** After n deltas not one byte more, for ever; a plain answer stops in the middle of its body. */
export interface HangInside extends Answer, Delivery {
  readonly kind: "hang_inside";
  readonly after: number;
}

/** After n deltas the protocol's own word of failure, then the correct end of the body. A plain answer is a status 500. */
export interface FailInside extends Answer, Delivery {
  readonly kind: "fail_inside";
  readonly after: number;
  readonly message?: string;
}

interface Refusal {
  readonly kind: "refuse";
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** A string is sent as it is, an object as JSON; left out: an error as OpenAI writes it. */
  readonly body?: string | object;
}

/** Bytes as they are, each chunk in another write. */
export interface Raw {
  readonly kind: "raw";
  /** "none": the chunks are all, the status line too. */
  readonly status?: number | "none";
  /** With `content-length` or `transfer-encoding` among them the body is not framed; left out: an event stream. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly chunks: readonly (string | Uint8Array)[];
  readonly gapMs?: number;
  /** After the last chunk. Left out: the correct end of the body. */
  readonly last?: "end" | "fin" | "reset" | "hang";
}

export type Script = Good | Cut | HangInside | FailInside | Refusal | Raw | { readonly kind: "hang" };

const HELLO = "Hello from the provider.";

/** What an answer says; undefined: it has no text, only a refusal or calls. */
export function textOf({ text, deltas, refusal, calls }: Answer): string | undefined {
  if (text !== undefined) return text;
  if (deltas !== undefined && typeof deltas !== "number") return deltas.join("");
  return refusal === undefined && calls === undefined ? HELLO : undefined;
}

/** The pieces of that text. */
export function piecesOf(answer: Answer): string[] {
  const { deltas = 5 } = answer;
  if (typeof deltas !== "number") return [...deltas];
  return slices(textOf(answer) ?? "", deltas);
}

/** What is no text (thoughts, a refusal, arguments) comes in two pieces. */
export function halves(text = ""): string[] {
  return slices(text, 2);
}

/** Characters stay whole; an empty text has no piece. */
function slices(text: string, count: number): string[] {
  const characters = [...text];
  const size = Math.max(1, Math.ceil(characters.length / count));
  return Array.from({ length: Math.ceil(characters.length / size) }, (_, index) =>
    characters.slice(index * size, (index + 1) * size).join(""),
  );
}

export function callId(call: Call, index: number): string {
  return call.id ?? `call_${index}`;
}

/** Usage of an answer that names none: small, and every kind of token is there. */
export function tokensOf(usage: Answer["usage"]): Required<Tokens> {
  const named = usage === undefined || usage === "none" || "wire" in usage ? { input: 12, output: 8 } : usage;
  return { cached: 0, reasoning: 0, ...named };
}
