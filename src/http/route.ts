/**
 * A route and its checks, in the order of the contract: route, key, size of the body, syntax of the body; then its handler
 * checks the fields. The app registers what is declared, counts it and puts its operation into the OpenAPI document.
 */
import type { Server } from "bun";
import { isCallersFault } from "../charge/unpaid.ts";
import { EVERY } from "../std/every-route.ts";
import { type Answers, Failure, type Row } from "../std/failure.ts";
import { type Timer, timerOf } from "../std/slices.ts";
import type { BodyRule } from "./body-rules.ts";
import type { HttpDeps, Principal } from "./deps.ts";
import type { FileSlice, Source } from "./download.ts";
import type { Operation } from "./operation.ts";
import type { Origin } from "./origin.ts";
import type { Events } from "./sse.ts";

/** A request as it arrived. */
export interface Arrival {
  readonly request: Request;
  /** The id in the response's header; every line that is logged about the request has it. */
  readonly requestId: string;
  /** Monotonic ms, before anything was read. */
  readonly arrivedMs: number;
  /** Parameters of the path, percent-decoded; null where one is not UTF-8. */
  readonly params: Readonly<Record<string, string | null>>;
  readonly server: Server<unknown> | null;
  /** The client's network, and the address that it used for this service. */
  readonly origin: Origin;
}

/** A request whose key and body are right. */
export interface Call<Who extends Principal | undefined, Body> extends Arrival {
  readonly principal: Who;
  readonly body: Body;
  /** Monotonic ms when the last byte of the body was here. */
  readonly bodyMs: number;
  /** Does work behind the handler's first `await` whose time counts if nobody pays for the answer; what is before it counts anyway. */
  readonly timed: Timer;
}

/** What a handler answers. */
export interface Reply {
  readonly status: number;
  /** Text is JSON unless `headers` say otherwise. */
  readonly body: string | Uint8Array<ArrayBuffer> | null | FileSlice | Source | Events;
  /** Lower-case names. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Values of `Set-Cookie`, of which an answer may have several. */
  readonly cookies?: readonly string[];
  /** No charge pays for it: it counts against the account's budget of such work. */
  readonly unpaid?: true;
}

/** A failure whose answer has headers of its route. */
export interface FailedReply {
  readonly failure: Failure;
  readonly headers?: Reply["headers"];
}

/** `upgraded`: the connection is a WebSocket now, and there is no response. */
export type Outcome = Reply | Failure | FailedReply | "upgraded";

interface Facts {
  readonly method: "GET" | "HEAD" | "POST" | "PUT" | "DELETE";
  /** `:name` is one segment, `*` at the end the rest of the path. */
  readonly path: string;
  /** The route's name in metrics. */
  readonly name: string;
  /** It begins work, which is refused from the signal to end on; all other requests are still answered. */
  readonly beginsWork?: true;
  /** Money is held before it runs. */
  readonly paid?: true;
  /** It is work that nobody pays for: an account above its bound is refused at the door. So it is where there is a body, or work begins. */
  readonly free?: true;
  /** The failures that its handler answers with. */
  readonly failures?: readonly Row[];
  /** A page for people has none: it is not in the OpenAPI document. */
  readonly operation?: Operation;
}

/** How the account of a request is found. */
export interface KeyRule<Who extends Principal | undefined> {
  readonly needed: boolean;
  find(deps: HttpDeps, arrival: Arrival): Promise<Who | Failure>;
}

export const KEY: KeyRule<Principal> = {
  needed: true,
  find: (deps, { request, origin }) => deps.authenticate(request.headers.get("authorization"), () => origin.network),
};

export const NO_KEY: KeyRule<undefined> = { needed: false, find: async () => undefined };

interface Declaration<Who extends Principal | undefined, Body> extends Facts {
  readonly key: KeyRule<Who>;
  readonly body: BodyRule<Body>;
  readonly handle: (call: Call<Who, Body>) => Promise<Outcome>;
}

/** A route of any body: its checks and its handler are one function. */
export interface Route extends Facts {
  readonly keyed: boolean;
  readonly readsBody: boolean;
  readonly run: (deps: HttpDeps, answers: Answers, arrival: Arrival) => Promise<Outcome>;
}

export function route<Who extends Principal | undefined, Body>(declaration: Declaration<Who, Body>): Route {
  const { key, body, handle, ...facts } = declaration;
  const { beginsWork, free } = facts;
  const run: Route["run"] = async (deps, answers, arrival) => {
    const { lifecycle, ingress, bodies, clock, unpaid } = deps;
    const { request } = arrival;
    const principal = await key.find(deps, arrival);
    if (principal instanceof Failure) return principal;
    if (beginsWork && lifecycle.draining) return shuttingDown(answers);
    const owner = principal?.accountId ?? "";
    const refusal = () => (principal ? unpaid.refusal(owner) : undefined);
    const refused = beginsWork || free || body.reads ? refusal() : undefined;
    if (refused) return refused;
    let spentMs = 0;
    const spent = (ms: number) => {
      spentMs += ms;
    };
    const timed = timerOf(clock, spent);
    const ended = (outcome: Outcome) => {
      if (principal && isUnpaid(outcome, request.signal.aborted)) unpaid.spend(owner, spentMs);
      return outcome;
    };
    let bodyMs: number | undefined;
    const arrived = () => {
      bodyMs = clock.monotonicMs();
    };
    const read = await body.read(request, { ingress, bodies, clock, answers, owner, refusal, spent, timed, arrived });
    if (read instanceof Failure) return ended(read);
    try {
      // A body may take long to arrive: nothing new begins after the signal to end.
      if (beginsWork && lifecycle.draining) return shuttingDown(answers);
      const call = { ...arrival, principal, body: read.value, bodyMs: bodyMs ?? clock.monotonicMs(), timed };
      // The handler runs at once up to its first `await`: that is the checks of the fields.
      return ended(await timed(() => handle(call)));
    } finally {
      read.release();
    }
  };
  return { ...facts, keyed: key.needed, readsBody: body.reads, run };
}

/** `left`: the client has gone, so that a failure of ours is free work as well. */
function isUnpaid(outcome: Outcome, left: boolean): boolean {
  if (outcome === "upgraded") return false;
  const failure = outcome instanceof Failure ? outcome : "failure" in outcome ? outcome.failure : undefined;
  if (failure) return left || isCallersFault(failure);
  return "unpaid" in outcome && outcome.unpaid === true;
}

function shuttingDown({ unavailable }: Answers): Failure {
  return new Failure(unavailable, "the service is shutting down; try again in some seconds");
}

/** A route that does not exist, or not with this method. */
export function notFound(): Failure {
  return new Failure(EVERY.not_found, "there is no such route, or not with this method; see the API's documentation");
}
