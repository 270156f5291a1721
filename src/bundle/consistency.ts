/** Whether the parts of a manifest agree. Checked before anything is loaded, so that the code that runs a chunk need not check shapes. */
import { LIMITS } from "../limits.ts";
import { fault, firstBroken, firstRepeated } from "./fault.ts";
import { checkFlow } from "./flow-consistency.ts";
import { checkGraphs } from "./graph-consistency.ts";
import type { Manifest } from "./manifest.ts";
import { idFault } from "./served-id.ts";
import { stateShape } from "./state-shape.ts";

/** The first contradiction, with its JSON path, what was found and what was expected; undefined when there is none. */
export function contradiction(manifest: Manifest): string | undefined {
  for (const check of [
    checkFacts,
    checkFlow,
    checkMemory,
    checkSources,
    checkColumns,
    checkPrompt,
    checkGraphs,
    checkListed,
    idFault,
  ]) {
    const fault = check(manifest);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function checkFacts(manifest: Manifest): string | undefined {
  const { cameras, frames, stateful, image, action } = manifest;
  const twice = firstRepeated(cameras) ?? -1;
  const most = cameras.length * Math.max(frames.first, frames.later);
  const frameMax = LIMITS.observationFramesMax;
  const isResized = image.resize !== "exact";
  const values = action.rows * action.columns.length;
  return firstBroken([
    [twice < 0, `/cameras/${twice}`, cameras[twice], "a name that stands once"],
    [most <= frameMax, "/frames", `${most} in all`, `${frameMax} at most`],
    // Without memory a first request cannot be told from a later one.
    [stateful || frames.first === frames.later, "/frames/first", frames.first, frames.later],
    [frames.first <= frames.later, "/frames/first", frames.first, `${frames.later} at most, as later`],
    [image.place === undefined || image.resize === "pad", "/image/place", image.place, `nothing, with ${image.resize}`],
    [isResized || image.filter === undefined, "/image/filter", image.filter, "nothing, with exact"],
    [!isResized || image.filter !== undefined, "/image/filter", "nothing", `a filter, with ${image.resize}`],
    [(action.prefix ?? 0) < action.rows, "/action/prefix", action.prefix, `less than the ${action.rows} rows`],
    [values <= LIMITS.chunkValuesMax, "/action", `${values} values`, `${LIMITS.chunkValuesMax} at most`],
  ]);
}

/** Memory, and the fields that only a model with memory has. */
function checkMemory({ memory, stateful, batch, graphs, guidance, cameras, image }: Manifest): string | undefined {
  const remembers = memory !== null;
  const [found, expected] = remembers ? ["nothing", "a graph"] : ["a graph", "nothing, without memory"];
  const tokens = cameras.length * image.tokens;
  const { window = 0, first = 0, later = 0 } = memory ?? {};
  return firstBroken([
    [stateful === remembers, "/stateful", stateful, `${remembers}, as memory is ${remembers ? "" : "not "}there`],
    [remembers === (graphs.extend !== undefined), "/graphs/extend", found, expected],
    [remembers || guidance === null, "/guidance", guidance, "null, without memory"],
    [!remembers || batch === 1, "/batch", batch, "1, with memory"],
    [!remembers || memory.tokens === tokens, "/memory/tokens", memory?.tokens, `${tokens}, those of all cameras`],
    [first <= window, "/memory/first", first, `${window} at most, the window`],
    [later <= window, "/memory/later", later, `${window} at most, the window`],
  ]);
}

/** The array and the place that each state column is read from. The columns of a `vector` are the whole array in its order, so that their names are its names. */
function checkSources({ state, action }: Manifest): string | undefined {
  const { kind, columns } = state;
  const isVector = kind === "vector";
  const shape = stateShape(kind, columns.length);
  const arrays = Object.entries(shape).flatMap(([name, count]) => (count > 0 ? [name] : []));
  for (const [at, { from, index }] of columns.entries()) {
    const path = `/state/columns/${at}`;
    const { [from]: count = 0 } = shape;
    if (count === 0) return fault(`${path}/from`, from, `${arrays.join(" or ")} in ${kind} state`);
    if (isVector && index !== at) return fault(`${path}/index`, index, `${at}, the column's place in a vector`);
    if (index >= count)
      return fault(`${path}/index`, index, `less than the ${count} values of ${from} in ${kind} state`);
  }
  if (isVector === (action.space === "vector")) return undefined;
  return fault("/action/space", action.space, isVector ? "vector, as the state is" : `another one, with ${kind} state`);
}

function checkColumns(manifest: Manifest): string | undefined {
  const { state, action } = manifest;
  const sources = state.columns.map(({ from, index }) => `${from}[${index}]`);
  const twice = firstRepeated(sources);
  if (twice !== undefined) return fault(`/state/columns/${twice}`, sources[twice], "a value that is read once");
  for (const [side, { columns, width }] of Object.entries({ state, action })) {
    const repeated = firstRepeated(columns.map(({ name }) => name));
    if (repeated !== undefined)
      return fault(`/${side}/columns/${repeated}/name`, columns[repeated]?.name, "a name that stands once");
    if (columns.length > width) return fault(`/${side}/columns`, `${columns.length} columns`, `${width} at most`);
    for (const [index, { norm, epsilon, epsilon_rule, clip }] of columns.entries()) {
      const path = `/${side}/columns/${index}`;
      for (const [name, value] of Object.entries({ epsilon, epsilon_rule })) {
        if (norm === "none" && value !== undefined) return fault(`${path}/${name}`, value, "nothing, with norm none");
      }
      if (clip && clip.min >= clip.max) return fault(`${path}/clip/max`, clip.max, `more than min, ${clip.min}`);
    }
  }
  for (const [index, start] of action.rotation6d.entries()) {
    const free =
      start + 6 <= action.columns.length && action.rotation6d.every((one) => one <= start - 6 || one >= start);
    const alone = action.rotation6d.indexOf(start) === index;
    if (!free || !alone) return fault(`/action/rotation6d/${index}`, start, "six free columns");
  }
  for (const [index, { name, unit, min, max, relative_to: base, max_jump: limit }] of action.columns.entries()) {
    if (min >= max) return fault(`/action/columns/${index}/max`, max, `more than min, ${min}`);
    if (base !== null && base >= state.columns.length) {
      return fault(`/action/columns/${index}/relative_to`, base, `less than ${state.columns.length} state columns`);
    }
    if (limit === undefined) continue;
    const from = base === null ? state.columns.find((one) => one.name === name) : state.columns[base];
    const unitOf = from?.unit ?? "no state column";
    if (unitOf !== unit) {
      return fault(
        `/action/columns/${index}/max_jump`,
        unitOf,
        `a state column of the same name, or relative_to, in ${unit}`,
      );
    }
  }
  return undefined;
}

/** Lengths of the prompt. A model with memory has one: what it remembers is of one shape. */
function checkBuckets(buckets: readonly number[], most: number, remembers: boolean): string | undefined {
  if (remembers && buckets.length > 0) return fault("/prompt/buckets", buckets, "nothing, with memory");
  const at = buckets.findIndex((length, index) => length >= (buckets[index + 1] ?? most));
  if (at < 0) return undefined;
  return fault(`/prompt/buckets/${at}`, buckets[at], `less than ${buckets[at + 1] ?? `tokens_max, ${most}`}`);
}

function checkPrompt({ prompt, state, memory, tokenizer }: Manifest): string | undefined {
  if ((prompt === null) !== (tokenizer === undefined))
    return fault("/tokenizer", tokenizer ?? "nothing", prompt === null ? "nothing, without a prompt" : "a file");
  if (prompt === null) return undefined;
  const instructions = prompt.parts.filter(({ kind }) => kind === "instruction" || kind === "template").length;
  if (instructions !== 1) return fault("/prompt/parts", `${instructions} instructions`, "one");
  let fixed = 0;
  for (const [index, part] of prompt.parts.entries()) {
    if (part.kind === "token") fixed += 1;
    const isTemplate = part.kind === "template";
    const hasState = isTemplate && part.text.includes("{state}");
    if (isTemplate && hasState !== (part.bins !== undefined))
      return fault(
        `/prompt/parts/${index}/bins`,
        part.bins ?? "nothing",
        hasState ? "bins" : "nothing, without {state}",
      );
    // Each number in a template is at least one token.
    if (part.kind === "state_tokens" || hasState) fixed += state.columns.length;
  }
  if (fixed >= prompt.tokens_max)
    return fault("/prompt/tokens_max", prompt.tokens_max, `more than the ${fixed} tokens without instruction`);
  return checkBuckets(prompt.buckets ?? [], prompt.tokens_max, memory !== null);
}

/** Every file that the manifest names is in `files` once, and no path leads out of the folder. */
function checkListed({ graphs, weight_files = [], tokenizer, norm, parity, files }: Manifest): string | undefined {
  const paths = files.map(({ path }) => path);
  const repeated = firstRepeated(paths);
  if (repeated !== undefined) return fault(`/files/${repeated}/path`, paths[repeated], "a path that stands once");
  const leaving = paths.findIndex((path) => path.split("/").some((part) => part === "." || part === ".."));
  if (leaving >= 0) return fault(`/files/${leaving}/path`, paths[leaving], "a path inside the bundle");
  const named: (readonly [place: string, file: string])[] = [
    ...weight_files.map((file, index) => [`/weight_files/${index}`, file] as const),
    ["/graphs/prefill/file", graphs.prefill.file],
    ["/graphs/extend/file", graphs.extend?.file ?? graphs.prefill.file],
    ["/graphs/denoise/file", graphs.denoise?.file ?? graphs.prefill.file],
    ["/tokenizer", tokenizer ?? graphs.prefill.file],
    ["/norm", norm],
    ["/parity/file", parity.file],
  ];
  const nested = weight_files.findIndex((file) => file.includes("/"));
  if (nested >= 0) return fault(`/weight_files/${nested}`, weight_files[nested], "a file beside the graphs");
  const unlisted = named.find(([, file]) => !paths.includes(file));
  return unlisted && fault(unlisted[0], unlisted[1], "a path that is listed in /files");
}
