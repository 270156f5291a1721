/** The model families: picks the graph builder for a model's facts. */
import type { Architecture, Facts, WorldArchitecture } from "./architecture.ts";
import { flowVla, flowVlaMismatch } from "./flow-vla.ts";
import type { Graphs } from "./graph.ts";
import type { Weights } from "./weights.ts";
import { worldAction, worldActionMismatch } from "./world-action/graphs.ts";

type AnyArchitecture = Architecture | WorldArchitecture;

/** All graphs; `vocabulary` is the number of token ids. `sizeMismatch` has found nothing. */
export function buildGraphs(facts: Facts, architecture: AnyArchitecture, vocabulary: number, weights: Weights): Graphs {
  return "transformer" in architecture
    ? worldAction(facts, architecture, vocabulary, weights)
    : flowVla(facts, architecture, vocabulary, weights);
}

/** Sizes that do not fit together, with the JSON path in model.json, what was found and what was expected. */
export function sizeMismatch(facts: Facts, architecture: AnyArchitecture, vocabulary: number): string | undefined {
  const found = "transformer" in architecture ? "world-action" : "flow-vla";
  if (found !== facts.family) return `/architecture: found that of a ${found}, expected that of a ${facts.family}`;
  return "transformer" in architecture
    ? worldActionMismatch(facts, architecture)
    : flowVlaMismatch(facts, architecture, vocabulary);
}
