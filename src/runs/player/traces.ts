/** State and action over time, with a row for each joint. The state is a solid line, and the action rows that were due a dashed one. */
import { type DueRow, dueLines, dueSamples, type Head, type Observation, type Point } from "./log-lines.ts";
import { draw, make } from "./page.ts";
import type { Stretch } from "./run-log.ts";
import { clockText, valueText } from "./words.ts";

const WIDTH = 1000;
const HEIGHT = 100;
/** The space above and below the lines. */
const EDGE = 8;

/** The columns of one name in state and action. */
interface Joint {
  readonly name: string;
  readonly state: number | undefined;
  readonly action: number | undefined;
}

interface Row extends Joint {
  readonly svg: SVGElement;
  readonly statePath: SVGElement;
  readonly actionPath: SVGElement;
  readonly cursor: SVGElement;
  readonly stateCell: HTMLElement;
  readonly actionCell: HTMLElement;
  readonly range: HTMLElement;
  /** The bounds of all values that were drawn, so that the scale does not jump. */
  low: number;
  high: number;
}

export class Traces {
  readonly #rows: Row[];
  #from = 0;
  #to = 1;

  constructor(
    private readonly head: Head,
    body: HTMLElement,
    private readonly span: HTMLElement,
    seek: (t: number) => void,
  ) {
    this.#rows = jointsOf(head).map(rowOf);
    for (const row of this.#rows) {
      const plot = make("td", "trace-plot", row.svg, row.range);
      body.append(make("tr", undefined, heading(row.name), row.stateCell, row.actionCell, plot));
      const toMoment = (event: PointerEvent) => {
        const { left, width } = row.svg.getBoundingClientRect();
        const share = Math.max(0, Math.min(1, (event.clientX - left) / width));
        seek(this.#from + share * (this.#to - this.#from));
      };
      row.svg.addEventListener("pointerdown", (event) => {
        row.svg.setPointerCapture(event.pointerId);
        toMoment(event);
      });
      row.svg.addEventListener("pointermove", (event) => {
        if (row.svg.hasPointerCapture(event.pointerId)) toMoment(event);
      });
    }
  }

  /** Sets the span of time that is shown. */
  window(from: number, to: number): void {
    this.#from = from;
    this.#to = Math.max(to, from + 1e-3);
    this.span.textContent = `${clockText(from)} to ${clockText(to)}`;
  }

  show({ lines, whole }: Stretch): void {
    for (const row of this.#rows) {
      const { state, action } = row;
      const states =
        state === undefined ? [] : [lines.map(({ t, state: all }) => ({ t, value: all[state] ?? Number.NaN }))];
      const actions = action === undefined ? [] : this.#actions(lines, action, whole);
      for (const { value } of [...states, ...actions].flat()) {
        if (Number.isNaN(value)) continue;
        row.low = Math.min(row.low, value);
        row.high = Math.max(row.high, value);
      }
      row.statePath.setAttribute("d", this.#path(states, row));
      row.actionPath.setAttribute("d", this.#path(actions, row));
      if (row.high >= row.low) row.range.replaceChildren(valueText(row.high), make("br"), valueText(row.low));
    }
  }

  #actions(lines: readonly Observation[], column: number, whole: boolean): Point[][] {
    return whole ? dueLines(lines, column, this.head.dt) : dueSamples(lines, column);
  }

  cursor(t: number): void {
    const x = this.#x(t);
    for (const { cursor } of this.#rows) {
      cursor.setAttribute("x1", x);
      cursor.setAttribute("x2", x);
    }
  }

  values(one: Observation, due: DueRow | undefined): void {
    for (const { state, action, stateCell, actionCell } of this.#rows) {
      stateCell.textContent = valueText(state === undefined ? undefined : one.state[state]);
      actionCell.textContent = valueText(action === undefined ? undefined : due?.row[action]);
    }
  }

  #path(lines: readonly (readonly Point[])[], { low, high }: Row): string {
    const scale = high > low ? (HEIGHT - 2 * EDGE) / (high - low) : 0;
    const y = (value: number) => (high > low ? HEIGHT - EDGE - (value - low) * scale : HEIGHT / 2).toFixed(1);
    let path = "";
    for (const points of lines) {
      let pen = "M";
      for (const { t, value } of points) {
        if (Number.isNaN(value)) {
          pen = "M";
          continue;
        }
        path += `${pen}${this.#x(t)} ${y(value)}`;
        pen = "L";
      }
    }
    return path;
  }

  #x(t: number): string {
    return (((t - this.#from) / (this.#to - this.#from)) * WIDTH).toFixed(1);
  }
}

/** A state and an action of the same name share a row. */
function jointsOf({ stateNames, actionNames }: Head): Joint[] {
  const taken = new Set<number>();
  const states = stateNames.map((name, state) => {
    const at = actionNames.findIndex((other, index) => other === name && !taken.has(index));
    if (at >= 0) taken.add(at);
    return { name, state, action: at < 0 ? undefined : at };
  });
  const rest = actionNames.flatMap((name, action) => (taken.has(action) ? [] : [{ name, state: undefined, action }]));
  return [...states, ...rest];
}

function rowOf(joint: Joint): Row {
  const line = { fill: "none", "vector-effect": "non-scaling-stroke" };
  const statePath = draw("path", { ...line, class: "trace-state" });
  const actionPath = draw("path", { ...line, class: "trace-action" });
  const cursor = draw("line", { ...line, class: "trace-cursor", x1: "0", x2: "0", y1: "0", y2: String(HEIGHT) });
  const svg = draw("svg", {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    preserveAspectRatio: "none",
    "aria-hidden": "true",
    focusable: "false",
  });
  svg.append(actionPath, statePath, cursor);
  return {
    ...joint,
    svg,
    statePath,
    actionPath,
    cursor,
    stateCell: make("td", "number", "–"),
    actionCell: make("td", "number", "–"),
    range: make("span", "trace-range"),
    low: Number.POSITIVE_INFINITY,
    high: Number.NEGATIVE_INFINITY,
  };
}

function heading(name: string): HTMLElement {
  const cell = make("th", undefined, name);
  cell.scope = "row";
  return cell;
}
