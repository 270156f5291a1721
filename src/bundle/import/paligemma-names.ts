/** The names of pi0.5's tensors: openpi's, to which LeRobot and older files put or leave out words. */

/** Rewrites, in order, each of the begin of a name. */
const REWRITES: readonly (readonly [RegExp, string])[] = [
  // LeRobot keeps openpi's module under this name.
  [/^model\./, ""],
  // Older transformers had the language model, the tower and the projector directly under `paligemma`.
  [/^(paligemma_with_expert\.paligemma\.)language_model\.lm_head\./, "$1lm_head."],
  [/^(paligemma_with_expert\.paligemma\.)language_model\.model\./, "$1model.language_model."],
  [/^(paligemma_with_expert\.paligemma\.)(vision_tower|multi_modal_projector)\./, "$1model.$2."],
  // Newer transformers leave out this word.
  [/^(paligemma_with_expert\.paligemma\.model\.vision_tower\.)vision_model\./, "$1"],
];

/** The name that the tables of this folder use. */
export function plainName(name: string): string {
  return REWRITES.reduce((text, [pattern, words]) => text.replace(pattern, words), name);
}

const PALIGEMMA = "paligemma_with_expert.paligemma.";
export const NAMES = {
  tower: `${PALIGEMMA}model.vision_tower.`,
  projector: `${PALIGEMMA}model.multi_modal_projector.linear`,
  language: `${PALIGEMMA}model.language_model.`,
  expert: "paligemma_with_expert.gemma_expert.model.",
  embedding: `${PALIGEMMA}model.language_model.embed_tokens.weight`,
  /** The same table, and in some files the only one. */
  head: `${PALIGEMMA}lm_head.weight`,
} as const;

/** Tensors that nothing reads when rows are computed. */
export function isUnused(name: string): boolean {
  return (
    name === NAMES.head ||
    name === `${NAMES.language}norm.weight` ||
    name.startsWith("paligemma_with_expert.gemma_expert.lm_head.") ||
    name === `${NAMES.expert}embed_tokens.weight` ||
    name.endsWith(".position_ids") ||
    name.endsWith(".rotary_emb.inv_freq") ||
    name.startsWith(`${NAMES.tower}head.`)
  );
}
