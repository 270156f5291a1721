/** `GET /v1/responses/{response_id}`: the response as it is now. */

import type { Reply } from "../../http/reply.ts";
import { Failure } from "../../std/failure.ts";
import { StoreDown } from "../../store/store.ts";
import type { LlmDeps } from "../deps.ts";
import { LLM } from "../errors.ts";
import { storeDown } from "../failures.ts";
import { shownText } from "../watch.ts";

export const RESPONSE_ID = /^resp_[0-9A-Za-z]{24,64}$/;

export async function retrieve(
  { store }: Pick<LlmDeps, "store">,
  { accountId, id }: { readonly accountId: string; readonly id: string },
): Promise<Reply | Failure> {
  if (!RESPONSE_ID.test(id)) {
    return new Failure(
      LLM.invalid_id,
      "the id is not that of a response; expected resp_ and at least 24 letters and digits",
    );
  }
  const found = await store.response({ id, accountId });
  if (found instanceof StoreDown) return storeDown(found);
  const body = found && shownText(found);
  if (body !== undefined) return { status: 200, body };
  return new Failure(LLM.response_not_found, "the account has no response with this id, or it ended without one");
}
