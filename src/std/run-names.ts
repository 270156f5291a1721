/** The names of runs and the paths of their files (contract section 7), as the service and its client check them. */
import { LIMITS } from "../limits.ts";

export interface RunName {
  readonly robot: string;
  readonly run: string;
}

export const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern matches control characters.
const REFUSED = /[\u0000-\u001f\u007f-\u009f\\/]/;

/** The fault of a robot's or a run's name, as the end of a sentence. */
export function nameProblem(name: string): string | undefined {
  if (NAME.test(name)) return undefined;
  return "must be 1 to 128 letters, digits, dots, underscores or hyphens, and begin with a letter or a digit";
}

/** The fault of the segments of a path, as the end of a sentence. */
export function pathProblem(segments: readonly string[]): string | undefined {
  if (!segments.every((segment) => segment.isWellFormed())) return "is not well-formed Unicode";
  const bytes = Buffer.byteLength(segments.join("/"));
  if (bytes === 0) return "is empty; name a file";
  if (bytes > LIMITS.runPathBytesMax) return `has ${bytes} bytes; at most ${LIMITS.runPathBytesMax} are allowed`;
  if (segments.length > LIMITS.runPathSegmentsMax) {
    return `has ${segments.length} segments; at most ${LIMITS.runPathSegmentsMax} are allowed`;
  }
  if (segments.some((segment) => segment === "")) return "has an empty segment; write each slash once, none at an end";
  if (segments.some((segment) => segment === "." || segment === ".."))
    return 'has a segment "." or ".."; name it without';
  if (segments.some((segment) => REFUSED.test(segment))) {
    return "has a segment with a slash, a backslash or a control character";
  }
  return undefined;
}
