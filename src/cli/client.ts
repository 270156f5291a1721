/** One call to a running service, with every way it can fail as a `Problem` and its exit code (contract section 6). */
import { EXIT, Problem } from "../error.ts";
import { LIMITS } from "../limits.ts";
import { parseJson, textAt } from "./json.ts";
import { printable } from "./print.ts";

export interface Service {
  /** Base address without a slash at its end, for example `http://127.0.0.1:8080`. */
  readonly url: string;
  readonly apiKey: string;
}

export interface Answer {
  readonly body: unknown;
  readonly headers: Headers;
}

/** `POST path` with a JSON text; a reply other than 200 is a problem that says `code: message`. */
export async function post(service: Service, path: string, json: string): Promise<Answer | Problem> {
  let response: Response;
  let text: string;
  try {
    response = await fetch(`${service.url}${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${service.apiKey}`, "content-type": "application/json" },
      body: json,
      signal: AbortSignal.timeout(LIMITS.clientAnswerMs),
    });
    text = await response.text();
  } catch (error) {
    return unreachable(service, error);
  }
  const body = parseJson(text);
  if (response.ok) return { body, headers: response.headers };
  const exit = response.status === 401 ? EXIT.notSignedIn : EXIT.failed;
  const [code, message] = [textAt(body, "error", "code"), textAt(body, "error", "message")];
  if (code !== undefined && message !== undefined) return new Problem(printable(`${code}: ${message}`), exit);
  return new Problem(
    `the service at ${service.url} answered HTTP ${response.status} without an error object; is it a tendon service?`,
    exit,
  );
}

function unreachable(service: Service, error: unknown): Problem {
  if (error instanceof Error && error.name === "TimeoutError") {
    return new Problem(
      `the service at ${service.url} did not answer within ${LIMITS.clientAnswerMs / 1000} s; is it the right address?`,
      EXIT.unreachable,
    );
  }
  const reason = error instanceof Error ? error.message : String(error);
  return new Problem(
    `cannot reach a service at ${service.url} (${reason}); start one with 'tendon serve --dev' or name another with --base-url`,
    EXIT.unreachable,
  );
}
