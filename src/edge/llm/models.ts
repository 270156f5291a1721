/** The language models' routes: `GET /v1/models`, the ids of the language models. */
import { Type } from "@sinclair/typebox";
import { LLM_ANSWERS } from "../../error/llm.ts";
import { LLM_IDS } from "../../llm/models.ts";
import { NO_BODY } from "../http/body-rules.ts";
import { headers, json } from "../http/operation.ts";
import { KEY } from "../http/principal.ts";
import { route } from "../http/route.ts";
import type { Surface } from "../http/surface.ts";

/** Unix seconds: when version 1.0.0 of the interface was fixed. */
const CREATED = 1_793_491_200;

export function llm(): Surface {
  const data = LLM_IDS.map((id) => ({ id, object: "model", created: CREATED, owned_by: "tendon" }));
  const body = JSON.stringify({ object: "list", data });
  return {
    tag: "Language models",
    answers: LLM_ANSWERS,
    routes: [
      route({
        method: "GET",
        path: "/v1/models",
        name: "models",
        key: KEY,
        body: NO_BODY,
        operation: {
          operationId: "listModels",
          summary: "The ids of the language models",
          description:
            "Every id of the interface, whether its provider is configured or not. Robot models stand in `GET /readyz`.",
          responses: { "200": { description: "The ids.", headers: headers(), content: json("ModelList") } },
        },
        handle: async () => ({ status: 200, body }),
      }),
    ],
    schemas: { ModelList },
  };
}

const ModelList = Type.Object({
  object: Type.Literal("list"),
  data: Type.Array(
    Type.Object({
      id: Type.String({ enum: [...LLM_IDS], description: "A language model's id, exactly as requests name it." }),
      object: Type.Literal("model"),
      created: Type.Integer({ minimum: 0, description: "Unix seconds." }),
      owned_by: Type.String({ description: "Who serves it." }),
    }),
  ),
});
