/**
 * The request that the document shows: the one that `tendon sample` writes, with its frames scaled from 640 × 360 to
 * 320 × 180 so that the document stays small. A test draws the frames anew and compares.
 */
import { present } from "../../std/assert.ts";
import example from "./example.json" with { type: "json" };

const [text, ...images] = example.messages[0]?.content ?? [];

export const EXAMPLE = example;
export const EXAMPLE_INSTRUCTION: string = present(text?.text, "the example's instruction");
/** Data URLs of the three frames. */
export const EXAMPLE_FRAMES: readonly string[] = images.map((part) =>
  present(part.image_url?.url, "the URL of an example's frame"),
);
