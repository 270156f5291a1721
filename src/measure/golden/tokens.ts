/** Compares prompts token by token, and tells a state that fell into another bin from another text. */
import type { Manifest } from "../../bundle/manifest.ts";

/** id → text of its token. */
export type Pieces = ReadonlyMap<number, string>;

/** The texts of the ids in a `tokenizer.json`. */
export function piecesOf(json: string): Pieces {
  const { model, added_tokens: added = [] } = JSON.parse(json) as {
    model: { vocab: Record<string, number> | [string, number][] };
    added_tokens?: { id: number; content: string }[];
  };
  const vocab = Array.isArray(model.vocab)
    ? model.vocab.map(([text], id) => [id, text] as const)
    : Object.entries(model.vocab).map(([text, id]) => [id, text] as const);
  return new Map([...vocab, ...added.map(({ id, content }) => [id, content] as const)]);
}

/** The bin of each state column that the tokens hold; undefined for a prompt in which it is not found. */
function binsOf(ids: readonly number[], prompt: Manifest["prompt"], pieces: Pieces): number[] | undefined {
  for (const one of prompt?.parts ?? []) {
    if (one.kind === "state_tokens") {
      return ids.filter((id) => id >= one.base && id < one.base + one.bins).map((id) => id - one.base);
    }
    if (one.kind === "template" && one.text.includes(" {state}")) {
      // A byte-level token writes a space as Ġ, a SentencePiece one as ▁, or as the byte <0x20>.
      const text = ids
        .map((id) => pieces.get(id) ?? "")
        .join("")
        .replaceAll(/[Ġ▁]|<0x20>/g, " ");
      const before = (one.text.split(" {state}")[0] ?? "").split("}").at(-1) ?? "";
      const from = text.lastIndexOf(before);
      if (from < 0) return undefined;
      return (
        text
          .slice(from + before.length)
          .match(/-?\d+/g)
          ?.map(Number) ?? []
      );
    }
  }
  return undefined;
}

/** The first difference of two prompts in words, undefined without one. `state`: normalised, for people. */
export function promptFault(
  found: readonly number[],
  expected: readonly number[],
  { prompt, state: { columns } }: Pick<Manifest, "prompt" | "state">,
  state: ArrayLike<number>,
  pieces: Pieces,
): string | undefined {
  const at = Math.max(
    found.findIndex((id, place) => id !== expected[place]),
    found.length < expected.length && found.every((id, place) => id === expected[place]) ? found.length : -1,
  );
  if (at < 0) return undefined;
  const [own, theirs] = [binsOf(found, prompt, pieces), binsOf(expected, prompt, pieces)];
  if (own !== undefined && theirs !== undefined) {
    if (own.length !== theirs.length) return `state bin: found ${own.length} bins, expected ${theirs.length}`;
    const column = own.findIndex((bin, place) => bin !== theirs[place]);
    if (column >= 0) {
      const name = columns[column]?.name ?? `column ${column}`;
      return `state bin: column ${column} (${name}), ${state[column]} after normalising, is in bin ${own[column]}, expected ${theirs[column]}`;
    }
  }
  const word = (id: number | undefined) =>
    id === undefined ? "none" : `${id} ${JSON.stringify(pieces.get(id) ?? "?")}`;
  return `token ${at} is ${word(found[at])}, expected ${word(expected[at])}`;
}
