/** In which form a bundle is made: `--weights` and `--compute`. */
import { HALVES, PRECISIONS } from "../../bundle/weights.ts";
import { type Command, type CommandLine, usageProblem } from "../frame/command.ts";

/** How its weights are kept and what it computes in; exit 2 for forms that do not go together. */
export function formOf(command: Command, given: CommandLine) {
  const [asked, wanted] = [given.text("weights") ?? "f32", given.text("compute")];
  const wrong = (what: string) => usageProblem(command, what);
  const weights = PRECISIONS.find((one) => one === asked);
  if (weights === undefined) return wrong(`--weights is '${asked}', expected ${PRECISIONS.join(", ")}`);
  const compute = HALVES.find((one) => one === wanted);
  if (wanted !== undefined && compute === undefined) {
    return wrong(`--compute is '${wanted}', expected ${HALVES.join(" or ")}`);
  }
  if (compute && weights !== "f32") {
    return wrong(`--weights is '${weights}', but those of --compute ${compute} are ${compute}`);
  }
  return { weights, ...(compute && { compute }) };
}
