/** `GET /v1/models`: the ids of the language models. */
import { Failure } from "../../error/core.ts";
import { LLM_IDS } from "../../llm/models.ts";
import type { Reply } from "../http/answer.ts";
import { principalOf } from "../http/principal.ts";
import type { Service } from "../service.ts";

/** Unix seconds: when version 1.0.0 of the interface was fixed. */
const CREATED = 1_793_491_200;

export async function llmModels(service: Service, request: Request): Promise<Reply | Failure> {
  const principal = await principalOf(service, request);
  if (principal instanceof Failure) return principal;
  const data = LLM_IDS.map((id) => ({ id, object: "model", created: CREATED, owned_by: "tendon" }));
  return { status: 200, body: JSON.stringify({ object: "list", data }) };
}
