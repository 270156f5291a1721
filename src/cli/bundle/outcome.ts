/** What `bundle build` and `bundle verify` say of a whole and correct bundle, in words and as JSON. */
import { attentionWords } from "../../bundle/describe.ts";
import type { Manifest } from "../../bundle/manifest.ts";

/** One line for people, and its facts for programs. */
export function outcome(done: "built" | "verified", manifest: Manifest, dir: string) {
  const { id, export_id, reference, compute, attention, weights = compute ?? "f32", files } = manifest;
  const bytes = files.reduce((sum, { size }) => sum + size, 0);
  const kept = weights === "f32" ? "" : `, ${weights} weights${arithmeticOf(manifest)}`;
  const words = `${done} ${id}${reference ? " (reference bundle, random weights)" : ""}${kept}: ${files.length} files, ${bytes} bytes, ${dir}`;
  const facts = {
    ...{ ok: true, id, export_id, reference, weights },
    ...(compute && { compute }),
    ...(attention && { attention }),
    ...{ dir, files: files.length, bytes },
  };
  return { words, facts };
}

/** What a build for GPUs computes in, behind the type of its weights. */
function arithmeticOf({ compute, weights, attention }: Manifest): string {
  if (compute === undefined) return "";
  const told = weights === undefined ? " and arithmetic" : `, ${compute} arithmetic`;
  return [told, attentionWords(attention)].filter((one) => one !== undefined).join(", ");
}
