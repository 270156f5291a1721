/** The model families: picks the graph builder for a model's facts. */
import { assert } from "../std/assert.ts";
import { type ActArchitecture, act, actMismatch } from "./act.ts";
import type { Architecture, BundleFacts, WorldArchitecture } from "./architecture.ts";
import { flowVla, flowVlaMismatch } from "./flow-vla.ts";
import type { Graphs } from "./graph.ts";
import type { Weights } from "./weights.ts";
import { worldAction, worldActionMismatch } from "./world-action/graphs.ts";

export type AnyArchitecture = Architecture | WorldArchitecture | ActArchitecture;

/** All graphs; `vocabulary` is the number of token ids. `sizeMismatch` has found nothing. */
export function buildGraphs(
  facts: BundleFacts,
  architecture: AnyArchitecture,
  vocabulary: number,
  weights: Weights,
): Graphs {
  if ("backbone" in architecture) {
    assert(facts.flow === null, "this family has no flow");
    return act(facts, architecture, weights);
  }
  assert(facts.flow !== null, "this family has a flow");
  return "transformer" in architecture
    ? worldAction(facts, architecture, vocabulary, weights)
    : flowVla(facts, architecture, vocabulary, weights);
}

/** Sizes that do not fit together, with the JSON path in model.json, what was found and what was expected. */
export function sizeMismatch(
  facts: BundleFacts,
  architecture: AnyArchitecture,
  vocabulary: number,
): string | undefined {
  const found = "backbone" in architecture ? "act" : "transformer" in architecture ? "world-action" : "flow-vla";
  if (found !== facts.family) return `/architecture: found that of a ${found}, expected that of a ${facts.family}`;
  if ("backbone" in architecture || facts.flow === null) {
    const isPlain = "backbone" in architecture && facts.flow === null;
    return isPlain ? actMismatch(facts, architecture) : `/flow: found ${facts.flow}, expected that of a ${found}`;
  }
  return "transformer" in architecture
    ? worldActionMismatch(facts, architecture)
    : flowVlaMismatch(facts, architecture, vocabulary);
}
