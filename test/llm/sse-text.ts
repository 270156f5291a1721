/** Objects as text of a Server-Sent Events stream, with the freedoms that the format gives its writer. */

export interface SseOptions {
  readonly crlf?: boolean;
  /** The JSON over several `data:` lines, which its reader joins by line feeds. */
  readonly multiline?: boolean;
  /** Whether the stream ends with `data: [DONE]`. */
  readonly done?: boolean;
}

/** Events in one text each. An object's string `type` is its `event:` line too, as in Responses; chat's have none. */
export function sseEvents(objects: readonly object[], options: SseOptions = {}): string[] {
  const blocks = objects.map((object) => {
    const name = "type" in object && typeof object.type === "string" ? [`event: ${object.type}`] : [];
    const json = options.multiline ? JSON.stringify(object, null, 1).split("\n") : [JSON.stringify(object)];
    return [...name, ...json.map((line) => `data: ${line}`)];
  });
  if (options.done) blocks.push(["data: [DONE]"]);
  const end = options.crlf ? "\r\n" : "\n";
  return blocks.map((lines) => `${lines.join(end)}${end}${end}`);
}

/** The whole stream. */
export function sse(objects: readonly object[], options: SseOptions = {}): string {
  return sseEvents(objects, options).join("");
}
