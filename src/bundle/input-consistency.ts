/** Whether the inputs of a manifest's graphs come from somewhere, as a type and in a shape that the engine can give them. */
import { nearest } from "../std/nearest.ts";
import { fault, firstRepeated } from "./fault.ts";
import { type GraphName, type GraphSizes, graphSizes, type Input, RULES } from "./input-roles.ts";
import { INPUT_ROLES, type Manifest } from "./manifest.ts";

const FIELDS = ["buckets", "cameras"] as const;

/** The first contradiction, as `contradiction` says it. */
export function checkInputs(manifest: Manifest): string | undefined {
  const unknown = unknownRole(manifest);
  if (unknown !== undefined) return unknown;
  const sizes = graphSizes(manifest);
  for (const graph of ["prefill", "extend", "denoise"] as const) {
    const inputs = manifest.graphs[graph]?.inputs;
    if (inputs === undefined) continue;
    const path = `/graphs/${graph}/inputs`;
    for (const [index, input] of inputs.entries()) {
      const wrong = inputFault(`${path}/${index}`, graph, input, sizes);
      if (wrong !== undefined) return wrong;
    }
    const missing =
      missingInput(path, graph, inputs, sizes) ??
      viewFault(path, graph, inputs, manifest.cameras, sizes) ??
      maskFault(path, inputs, sizes);
    if (missing !== undefined) return missing;
  }
  return pictureFault(manifest) ?? checkActionPrefix(manifest);
}

/** All pictures of a model are of one type. Unrounded values are no pixels. */
function pictureFault({ image, graphs }: Manifest): string | undefined {
  const inputs = [graphs.prefill, graphs.extend].flatMap((graph) => graph?.inputs ?? []);
  const dtypes = new Set(inputs.filter(({ role }) => role === "images").map(({ dtype }) => dtype));
  if (image.filter === "torch-bilinear" && dtypes.has("u8"))
    return fault("/image/filter", image.filter, "f32 images for its unrounded values, or another filter");
  return dtypes.size > 1 ? fault("/graphs", `images as ${[...dtypes].join(" and ")}`, "one type") : undefined;
}

/** A role that nobody knows: before all else, since a misspelt one is also missing. */
function unknownRole({ graphs }: Manifest): string | undefined {
  for (const [graph, { inputs }] of Object.entries(graphs)) {
    const index = inputs.findIndex(({ role }) => !INPUT_ROLES.includes(role));
    if (index < 0) continue;
    const role: string = inputs[index]?.role ?? "";
    const expected = `${nearest(role, INPUT_ROLES)}, the nearest of ${INPUT_ROLES.join(", ")}`;
    return fault(`/graphs/${graph}/inputs/${index}/role`, role, expected);
  }
  return undefined;
}

function inputFault(place: string, graph: GraphName, input: Input, sizes: GraphSizes): string | undefined {
  const { role, dtype, shape } = input;
  const { dtypes, fields = [], shapes } = RULES[role];
  const fits = ({ graphs, memory = sizes.remembers, text = false }: (typeof RULES)[typeof role]) =>
    graphs.includes(graph) && memory === sizes.remembers && (sizes.reads || !text);
  if (!fits(RULES[role]))
    return fault(`${place}/role`, role, INPUT_ROLES.filter((one) => fits(RULES[one])).join(" or "));
  const foreign = FIELDS.find((field) => input[field] !== undefined && !fields.includes(field));
  if (foreign !== undefined) return fault(`${place}/${foreign}`, input[foreign], `nothing for the role ${role}`);
  if (!dtypes.includes(dtype)) return fault(`${place}/dtype`, dtype, dtypes.join(" or "));
  const possible = shapes?.(sizes, graph, input);
  if (possible && !possible.some((one) => Bun.deepEquals(one, shape))) {
    return fault(`${place}/shape`, shape, possible.map((one) => JSON.stringify(one)).join(" or "));
  }
  if (role === "time" && dtype !== "f32" && input.buckets === undefined)
    return fault(`${place}/buckets`, "nothing", `a number of buckets, for a time in ${dtype}`);
  return undefined;
}

/** What a graph cannot do without, and what it may have once. */
function missingInput(path: string, graph: GraphName, inputs: readonly Input[], { remembers, reads }: GraphSizes) {
  const count = (...roles: readonly Input["role"][]) => inputs.filter(({ role }) => roles.includes(role)).length;
  const needed: readonly (readonly Input["role"][])[] =
    graph === "denoise"
      ? [["latent"], ["time"], ...(remembers ? [["memory_length"] as const, ["block_length"] as const] : [])]
      : [
          ["images"],
          // Without the mask nothing tells padding from a token.
          ...(reads ? [["tokens"] as const, ["token_mask"] as const] : []),
          ...(graph === "extend" ? [["memory_length"] as const] : []),
        ];
  const missing = needed.find((roles) => count(...roles) === 0);
  if (missing !== undefined) return fault(path, `none with role ${missing.join(" or ")}`, "one");
  const twice = INPUT_ROLES.find((role) => RULES[role].once && count(role) > 1);
  return twice && fault(path, `${count(twice)} with role ${twice}`, "one");
}

/** Each camera's pictures go to one place. */
function viewFault(
  path: string,
  graph: GraphName,
  inputs: readonly Input[],
  cameras: readonly string[],
  { remembers }: GraphSizes,
): string | undefined {
  if (graph === "denoise") return undefined;
  const own = inputs.filter(({ role }) => role === "images").flatMap((input) => input.cameras ?? cameras);
  const missing = cameras.find((name) => own.filter((one) => one === name).length !== 1);
  if (missing !== undefined) return fault(path, `${own.join(", ")} as views`, `${missing} once`);
  const twice = firstRepeated(own);
  if (twice !== undefined) return fault(path, `${own[twice]} twice as a view`, "it once");
  if (!remembers) return undefined;
  // What is remembered is counted in tokens of the model's cameras.
  return Bun.deepEquals(own, [...cameras]) ? undefined : fault(path, `${own.join(", ")} as views`, cameras.join(", "));
}

/** A mask of views names those that there are pictures of. */
function maskFault(path: string, inputs: readonly Input[], { views }: GraphSizes): string | undefined {
  for (const [index, { cameras, role }] of inputs.entries()) {
    const twice = firstRepeated(cameras ?? []);
    if (twice !== undefined)
      return fault(`${path}/${index}/cameras/${twice}`, cameras?.[twice], "a name that stands once");
    const strange = role === "image_mask" ? cameras?.find((name) => !views.includes(name)) : undefined;
    if (strange !== undefined) return fault(`${path}/${index}/cameras`, strange, `one of ${views.join(", ")}`);
  }
  return undefined;
}

/** Rows that a chunk continues are told to the graph, and only where the model says that there may be some. */
function checkActionPrefix({ action, graphs }: Manifest): string | undefined {
  const path = "/graphs/denoise/inputs";
  const inputs = graphs.denoise?.inputs ?? [];
  const index = inputs.findIndex(({ role, shape }) => role === "time" && shape.length === 2);
  if (action.prefix === undefined) {
    return index < 0
      ? undefined
      : fault(`${path}/${index}`, "rows that the chunk continues", "none, without /action/prefix");
  }
  return index < 0 ? fault(path, "nothing about the rows that a chunk continues", "a time for each row") : undefined;
}
