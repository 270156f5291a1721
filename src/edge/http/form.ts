/** Bodies of forms: `application/x-www-form-urlencoded`, small, read under a bound like every body. */
import { Failure } from "../../error/core.ts";
import { ROBOT } from "../../error/robot.ts";
import { LIMITS } from "../../limits.ts";
import type { Service } from "../service.ts";
import { readBody } from "./body.ts";

/** The fields of a form; one that is not there is empty. */
export type Form = (field: string) => string;

/** Failures: `request_too_large`, `invalid_body`, `engine_unavailable` when too many bodies are in memory. */
export async function readForm({ ingress, clock }: Service, request: Request): Promise<Form | Failure> {
  const type = request.headers.get("content-type") ?? "";
  if (!/^application\/x-www-form-urlencoded\s*(;|$)/i.test(type)) {
    return new Failure(ROBOT.invalid_body, "the body is not application/x-www-form-urlencoded; send it as a form does");
  }
  const body = await readBody(request, { bytesMax: LIMITS.formBytesMax, ingress, owner: "", clock });
  if (body instanceof Failure) return body.row === ROBOT.request_too_large ? tooLarge() : body;
  try {
    const fields = new URLSearchParams(new TextDecoder().decode(body.bytes));
    return (field) => fields.get(field) ?? "";
  } finally {
    body.release();
  }
}

function tooLarge(): Failure {
  return new Failure(ROBOT.request_too_large, `the form is over ${LIMITS.formBytesMax} bytes; send shorter fields`);
}
