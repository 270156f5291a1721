/** `GET /v1/models`: the ids of the language models, every one of the interface, whether its provider is configured or not. */
import { LLM_IDS } from "../models.ts";

/** Unix seconds: when version 1.0.0 of the interface was fixed. */
const CREATED = 1_793_491_200;

export function modelList(): string {
  const data = LLM_IDS.map((id) => ({ id, object: "model", created: CREATED, owned_by: "tendon" }));
  return JSON.stringify({ object: "list", data });
}
