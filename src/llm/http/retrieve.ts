/** `GET /v1/responses/{response_id}`: the response as it is now, or its events from the beginning. It is unpaid work. */
import type { Principal } from "../../http/deps.ts";
import type { Call, Reply } from "../../http/route.ts";
import { Failure } from "../../std/failure.ts";
import { StoreDown } from "../../store/store.ts";
import type { LlmDeps } from "../deps.ts";
import { LLM, storeDown } from "../errors.ts";
import { parsedObject } from "../output/object.ts";
import { shownText, watch } from "../watch.ts";
import { RESPONSE_ID } from "./openapi.ts";
import { streamed } from "./streamed.ts";

export async function retrieve(deps: LlmDeps, call: Call<Principal, undefined>): Promise<Reply | Failure> {
  const { accountId } = call.principal;
  const id = call.params.response_id ?? "";
  if (!RESPONSE_ID.test(id)) {
    return new Failure(
      LLM.invalid_id,
      "the id is not that of a response; expected resp_ and at least 24 letters and digits",
    );
  }
  const query = readQuery(new URL(call.request.url).searchParams);
  if (query instanceof Failure) return query;
  const found = await deps.store.response({ id, accountId });
  if (found instanceof StoreDown) return storeDown(found);
  const text = found && shownText(found);
  if (text === undefined)
    return new Failure(LLM.response_not_found, "the account has no response with this id, or it ended without one");
  if (!query.stream) return { status: 200, body: text, unpaid: true };
  const object = call.timed(() => parsedObject(text));
  if (query.after !== undefined && object.background !== true)
    return unfit(
      "starting_after",
      "the events of a live response are numbered anew here; read them from the beginning",
    );
  const stream = watch(deps, { accountId, object, replayed: true, after: query.after });
  if (stream instanceof Failure) return stream;
  return { ...streamed(call, stream), unpaid: true };
}

/** What each parameter may be, and the words for it. */
const PARAMETERS: ReadonlyMap<string, readonly [pattern: RegExp, expected: string]> = new Map([
  ["stream", [/^(true|false)$/, "expected true or false"]],
  ["starting_after", [/^\d{1,9}$/, "expected the sequence_number of an event"]],
  ["include", [/^$/, "it is not supported; leave it out"]],
]);

function readQuery(sent: URLSearchParams): { readonly stream: boolean; readonly after: number | undefined } | Failure {
  for (const [name, value] of sent) {
    const known = PARAMETERS.get(name);
    if (!known) return unfit(name, "there is no such parameter; leave it out");
    const [pattern, expected] = known;
    if (!pattern.test(value)) return unfit(name, expected);
    if (sent.getAll(name).length > 1) return unfit(name, "it is sent more than once; send it once");
  }
  const stream = sent.get("stream") === "true";
  const after = sent.get("starting_after");
  if (after !== null && !stream) return unfit("starting_after", "it is for stream=true; send both, or leave it out");
  return { stream, after: after === null ? undefined : Number(after) };
}

function unfit(param: string, message: string): Failure {
  return new Failure(LLM.invalid_request, `${param}: ${message}`, { param });
}
