/** What `bundle build`, `import` and `verify` say of a whole and correct bundle, in words and as JSON. */
import { weightWords } from "../../bundle/describe.ts";
import type { Manifest } from "../../bundle/manifest.ts";

/** One line for people, and its facts for programs. */
export function outcome(done: "built" | "imported" | "verified", manifest: Manifest, dir: string) {
  const { id, export_id, reference, compute, files } = manifest;
  const weights = weightWords(manifest);
  const bytes = files.reduce((sum, { size }) => sum + size, 0);
  const kept = weights === "f32" ? "" : `, ${weights} weights${compute ? " and arithmetic" : ""}`;
  const words = `${done} ${id}${reference ? " (reference bundle, random weights)" : ""}${kept}: ${files.length} files, ${bytes} bytes, ${dir}`;
  const facts = {
    ...{ ok: true, id, export_id, reference, weights },
    ...(compute && { compute }),
    ...{ dir, files: files.length, bytes },
  };
  return { words, facts };
}
