/** The published document as a client's tool sees it: its JSON, its schemas compiled, its responses looked up. */
import { Ajv2020 } from "ajv/dist/2020.js";
import type { Document } from "../../../src/http/document/document.ts";
import type { Response as Documented } from "../../../src/http/operation.ts";
import type { Stage } from "../../robot/stage.ts";

export interface Published {
  readonly document: Document;
  /** What the schema at a JSON pointer of the document has against a value; empty when it accepts it. */
  faults(pointer: string, value: unknown): string[];
  /** What the document has against an answer: a status, headers or a body that it does not document. */
  answerFaults(operation: string, response: Response): Promise<string[]>;
}

export const CHAT_BODY = pointer("paths", "/v1/chat/completions", "post", "requestBody", "content", "application/json");

export function pointer(...keys: readonly string[]): string {
  return keys.map((key) => `/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

export async function published({ send }: Pick<Stage, "send">): Promise<Published> {
  const document = (await (await send("/openapi.json")).json()) as Document;
  const ajv = new Ajv2020({ allowUnionTypes: true, strictRequired: false, strictTypes: false, allErrors: true });
  // The document's own words, so that ajv stays strict about those of its schemas.
  ajv.addVocabulary(Object.keys(document));
  ajv.addSchema(document, "document");
  const faults = (at: string, value: unknown): string[] => {
    const check = ajv.getSchema(`document#${encodeURI(at)}`);
    if (!check) throw new Error(`the document has no schema at ${at}`);
    if (check(value)) return [];
    return (check.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
  };
  return {
    document,
    faults,
    answerFaults: async (operation, response) => {
      const [method = "", path = ""] = operation.split(" ");
      const status = String(response.status);
      const documented = document.paths[path]?.[method.toLowerCase()]?.responses[status];
      if (!documented) return [`${operation} does not document ${status}`];
      const type = response.headers.get("content-type")?.split(";")[0] ?? "";
      const at = pointer("paths", path, method.toLowerCase(), "responses", status, "content", type, "schema");
      const text = await response.clone().text();
      if (documented.content === undefined && text === "") return headerFaults(documented, response);
      if (documented.content?.["*/*"] !== undefined) return headerFaults(documented, response);
      const known = documented.content?.[type] !== undefined;
      const values = valuesOf(type, text);
      return [
        ...headerFaults(documented, response),
        ...(known ? values.flatMap((value) => faults(at, value)) : [`${status} is not documented as ${type}`]),
      ];
    },
  };
}

/** The body as its schema describes it: one value of JSON, or that of each event of a stream. */
function valuesOf(type: string, text: string): unknown[] {
  if (type !== "text/event-stream") return [JSON.parse(text)];
  return [...text.matchAll(/^data: (\{.*)$/gm)].map((match) => JSON.parse(match[1] ?? ""));
}

/** Headers of HTTP itself, which say nothing about the interface. */
const PLAIN =
  /^(content-(type|length|security-policy)|cache-control|date|connection|x-content-type-options|x-accel-buffering|referrer-policy)$/;

function headerFaults(documented: Documented, response: Response): string[] {
  const names = Object.keys(documented.headers).map((name) => name.toLowerCase());
  return [...response.headers.keys()]
    .filter((name) => !names.includes(name) && !PLAIN.test(name))
    .map((name) => `${response.status} does not document the header ${name}`);
}
