/** A robot model as the service describes it: the reply to a message without images, which costs nothing and touches no session. */
import { Problem } from "../std/problem.ts";
import { contentOf } from "./chunk.ts";
import { post, type Service } from "./http.ts";

export const CHAT_ROUTE = "/v1/chat/completions";

/** Its text, and why its rows must never move a real arm: random weights, or no model. */
export async function descriptionOf(
  service: Service,
  model: string,
): Promise<{ readonly text: string; readonly warning: string | undefined } | Problem> {
  const question = JSON.stringify({ model, messages: [{ role: "user", content: "describe" }] });
  const answer = await post(service, CHAT_ROUTE, question);
  if (answer instanceof Problem) return answer;
  const text = contentOf(answer.body);
  // The description ends with the service's own words about it.
  if (text !== undefined) return { text, warning: isReference(answer.headers) ? text.split("\n").at(-1) : undefined };
  return new Problem(
    `the service at ${service.url} answered without a description of '${model}'; is it a tendon service?`,
  );
}

/** Whether an answer comes from random weights, or from no model. */
export function isReference(headers: Headers): boolean {
  return headers.get("x-tendon-bundle") === "reference";
}
